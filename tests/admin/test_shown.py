"""What is shown to whom, in which zone, and how it is told afterwards."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib import admin as django_admin
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.utils import timezone

from jobqueue import control
from jobqueue.admin import JobsOfObject
from jobqueue.admin.base import OperationsAdmin
from jobqueue.conf import options_for
from jobqueue.models import Action, BulkOperation, Job, JobTag, Limit
from jobqueue.redaction import hide_secrets
from jobqueue.storage import storage_for
from tests.admin import tasks  # noqa: F401 - registers what staff may plan
from tests.admin.making import FINGERPRINT, NOW, around, everything, job, page
from tests.app.models import Effect
from tests.storage.making import register

pytestmark = pytest.mark.django_db


# --- payload --------------------------------------------------------------------------------------


def test_arguments_results_and_tracebacks_are_for_whoever_may_see_them(as_staff):
    subject = job("dead", arguments={"args": ["secret order"], "kwargs": {}})
    around(subject)
    hidden = ("secret order", "/srv/shop/tasks.py", "Traceback of it", "&quot;id&quot;: 7")
    text = as_staff("view_job", "enqueue_job").get(page("job", subject.pk)).text
    assert "you lack the permission" in text
    assert not [each for each in hidden if each in text]
    assert "Submit again" not in text


def test_with_the_permission_they_are_shown_but_for_secrets(as_staff):
    subject = job("dead")
    around(subject)
    client = as_staff("view_job", "view_job_payload")
    text = client.get(page("job", subject.pk)).text
    assert "[hidden]" in text
    assert "hunter2" not in text
    assert "/srv/shop/tasks.py" in text
    assert "&quot;id&quot;: 7" in text


def shows_nothing(value, *, task, part):
    return "gone"


def test_the_hook_of_the_project_decides(as_staff, settings):
    settings.JOBQUEUE = {"REDACT": "tests.admin.test_shown.shows_nothing"}
    subject = job("dead", arguments={"args": ["visible"], "kwargs": {}})
    around(subject)
    text = as_staff("view_job", "view_job_payload").get(page("job", subject.pk)).text
    assert "visible" not in text.replace("visible=", "")
    assert "/srv/shop/tasks.py" not in text
    assert hide_secrets("x") == "x"


def test_hidden_arguments_are_not_sent_back(admin):
    """Filled into a form, the mark would be what the task gets."""
    subject = job("dead")
    text = admin.get(page("job", "submit"), {"again": subject.pk}).text
    assert "they are not filled in" in text
    assert "[hidden]" not in text
    plain = job("dead", arguments={"args": [42], "kwargs": {}})
    assert "[42]" in admin.get(page("job", "submit"), {"again": plain.pk}).text


# --- times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "shown"),
    [("UTC", "12:00:00"), ("Asia/Shanghai", "20:00:00"), ("Europe/Paris", "14:00:00")],
)
def test_times_are_in_the_readers_zone_and_say_so(zone, shown, admin):
    subject = job("dead")
    with timezone.override(zone):
        text = admin.get(page("job", subject.pk)).text
    exact = '<time datetime="2026-06-01T12:00:00+00:00" title="2026-06-01 12:00:00+00:00">'
    assert f"{exact}2026-06-01 {shown}</time>" in text
    assert f"Times are in {zone}" in text


def test_a_time_that_is_typed_is_one_of_the_readers_zone(admin):
    subject = job("ready")
    with timezone.override("Asia/Shanghai"):
        admin.post(page("job", subject.pk, "do", "reschedule"), {"run_at": "2030-01-01T08:00"})
    assert Job.objects.get(pk=subject.pk).run_at == datetime(2030, 1, 1, tzinfo=UTC)


def test_a_schedule_is_previewed_in_its_zone_and_saved_by_another_button(admin):
    given = {
        "name": "nightly", "task": "tests.admin.tasks.offered", "args": "[]", "kwargs": "{}",
        "cron": "30 2 * * *", "time_zone": "Europe/Paris", "missed": "once", "missed_limit": "100",
        "overlap": "allow", "jitter": "0", "enabled": "on",
        "start": "2027-03-27T00:00:00",
    }  # fmt: skip
    text = admin.post(page("schedule", "add"), given | {"_preview": "1"}).text
    assert "2027-03-27 02:30:00 CET" in text
    assert "2027-03-27 01:30:00" in text
    assert "2027-03-28 03:00:00 CEST" in text, "the night in which the clock goes forward"
    assert not control.schedules()
    admin.post(page("schedule", "add"), given | {"_save": "1"})
    (saved,) = control.schedules()
    assert saved.schedule.cron == "30 2 * * *"
    assert Action.objects.get().surface == "admin"


def test_a_schedule_that_cannot_be_is_refused_at_its_field(admin):
    given = {
        "name": "nightly", "task": "tests.admin.tasks.offered", "cron": "61 2 * * *",
        "missed": "once", "missed_limit": "100", "overlap": "allow", "jitter": "0",
    }  # fmt: skip
    text = admin.post(page("schedule", "add"), given | {"_save": "1"}).text
    assert re.search(r'id="id_cron-errors">', text)
    assert not control.schedules()


# --- what is told ---------------------------------------------------------------------------------


def test_counts_by_outcome_are_told(admin):
    register(storage_for(connection, options_for("default")))
    jobs = [job("dead"), job("dead"), job("succeeded"), job("running")]
    chosen = {
        "action": "requeue_selected",
        "_selected_action": [each.pk for each in jobs],
        "index": "0",
    }
    text = admin.post(page("job"), chosen, follow=True).text
    assert "2 requeued, 1 skipped: running, 1 skipped: succeeded" in text
    assert Action.objects.get().count == 2
    assert LogEntry.objects.count() == 2


def test_rows_that_moved_on_since_the_list_was_drawn_are_counted(admin):
    """The filter of the list would have dropped them without a word."""
    register(storage_for(connection, options_for("default")))
    moved, stays = job("dead"), job("dead")
    Job.objects.filter(pk=moved.pk).update(state="ready", finished_at=None)
    gone = job("dead")
    gone.delete()
    chosen = {
        "action": "requeue_selected",
        "_selected_action": [moved.pk, stays.pk, gone.pk or NOW, "nonsense"],
        "index": "0",
    }
    text = admin.post(page("job") + "?state=dead", chosen, follow=True).text
    assert "1 requeued" in text
    assert "1 skipped: ready" in text


def test_the_overview_says_what_is_wrong_and_where_to_go(admin):
    everything()
    text = admin.get("/admin/jobqueue/").text
    assert "paused" in text
    assert "?paused=1" in text


def test_the_overview_leads_to_the_error_the_queue_and_the_operation(admin):
    keys, now = everything(), datetime.now(UTC)
    for _ in range(10):
        job("dead", queue="mail", finished_at=now)
    BulkOperation.objects.update(state="failed", stepped_at=now)
    text = admin.get("/admin/jobqueue/").text
    assert f'href="{page("errorgroup", FINGERPRINT)}">This error</a>' in text
    assert f'href="{page("queue", "mail")}">Queue mail</a>' in text
    assert f'href="{page("bulkoperation", keys["bulkoperation"])}">This operation</a>' in text


def test_jobs_of_an_object_are_on_its_page(admin, settings):
    subject, other = job("dead"), job("dead")
    JobTag.objects.create(job_id=subject.pk, tag="order:42")

    class EffectAdmin(JobsOfObject, django_admin.ModelAdmin):
        jobs_tag = "order:{label}"

    shown = EffectAdmin(Effect, django_admin.site).jobs_of_object(Effect(label="42"))
    assert str(subject.pk) in shown
    assert str(other.pk) not in shown
    assert "Times are in" in shown
    assert ">enqueued</span>" in shown
    assert "jobqueue/admin.css" in str(EffectAdmin(Effect, django_admin.site).media)


def test_effects_are_beside_the_attempts_of_whoever_may_see_them(as_staff, admin, settings):
    settings.JOBQUEUE = {"ADMIN": {"EFFECTS": ["app.Effect.job_id"]}}
    subject, other = job("succeeded"), job("succeeded")
    Effect.objects.create(job_id=str(subject.pk), label="charged once")
    assert "charged once" in admin.get(page("job", subject.pk)).text
    assert "charged once" not in admin.get(page("job", other.pk)).text
    assert "charged once" not in as_staff("view_job").get(page("job", subject.pk)).text


def test_a_job_is_submitted_by_whoever_may_and_only_of_what_is_offered(as_staff):
    client = as_staff("view_job", "enqueue_job")
    given = {"task": "tests.admin.tasks.offered", "args": "[7]", "tags": "order:42"}
    answer = client.post(page("job", "submit"), given)
    made = Job.objects.get()
    assert answer.url == page("job", made.pk)
    assert (made.arguments["args"], made.created_by) == ([7], "kim")
    refused = given | {"task": "tests.admin.tasks.not_offered"}
    assert client.post(page("job", "submit"), refused).status_code == 200
    assert client.post(page("job", "submit"), given | {"args": "{"}).status_code == 200
    assert Job.objects.count() == 1


def test_running_again_makes_a_new_job_and_leads_to_it(as_staff):
    nothing = {"args": [], "kwargs": {}}
    subject = job("succeeded", task="tests.admin.tasks.offered", arguments=nothing)
    client = as_staff("view_job", "enqueue_job")
    answer = client.post(page("job", subject.pk, "do", "run_again"))
    copy = Job.objects.exclude(pk=subject.pk).get()
    assert answer.url == page("job", copy.pk)
    assert copy.copied_from == subject.pk


def test_a_limit_is_set_lifted_and_reset(as_staff):
    client = as_staff("view_limit", "change_limit")
    url = page("limit", "queue_3Amail")
    job("running", queue="mail"), job("ready", queue="mail"), job("running")
    text = client.get(url).text
    assert "<dt>In force</dt><dd>no limit</dd>" in text
    assert "<dt>Running</dt><dd>1</dd>" in text
    assert page("queue", "mail") in text
    client.post(page("limit", "queue_3Amail", "turn", "set"), {"running": "2", "reason": "gently"})
    assert "at most 2 at once" in client.get(url).text
    client.post(page("limit", "queue_3Amail", "turn", "set"), {"running": "-1"})
    client.post(page("limit", "queue_3Amail", "turn", "lift"))
    assert "no limit" in client.get(url).text
    assert [action.verb for action in Action.objects.order_by("id")] == ["set_limit", "lift_limit"]


def test_a_key_without_numbers_of_its_own_has_those_of_its_limit(as_staff):
    Limit.objects.create(key="customer", running=3, code_running=3, source="app")
    job("running", limit_key="customer:42"), job("running", limit_key="customer:7")
    job("blocked", limit_key="customer:42", reason="limit")
    text = as_staff("view_limit").get(page("limit", "customer:42")).text
    assert "at most 3 at once, as for each key of customer" in text
    assert "<dt>Running</dt><dd>1</dd><dt>Waiting for room</dt><dd>1</dd>" in text


def test_an_operation_that_has_not_finished_is_listed_with_how_far_it_came(admin):
    one = BulkOperation.objects.get(pk=everything()["bulkoperation"])
    told = Action.objects.create(
        at=NOW, actor="lee", surface="admin", verb="bulk requeue", count=3,
        target=f"bulk operation {one.pk}",
    )  # fmt: skip
    BulkOperation.objects.update(action=told.pk, state="failed", failures=5, error="it took long")
    assert "3 of 10, failed" in admin.get(page("action")).text
    BulkOperation.objects.update(state="finished", ended_at=NOW)
    assert "3 of 10" not in admin.get(page("action")).text


def test_the_links_below_a_list_say_for_how_many_jobs_where_the_page_shows_all(admin, monkeypatch):
    for state in ("ready", "ready", "running"):
        job(state)
    text = admin.get(page("job")).text
    assert ">Cancel: 3…<" in text
    assert ">Run now: 2…<" in text
    monkeypatch.setattr(OperationsAdmin, "list_per_page", 2)
    assert ">Cancel…<" in admin.get(page("job")).text
