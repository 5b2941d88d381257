"""What is hard to take back asks first, and says what it means."""

import re
from datetime import UTC, datetime

import pytest
from django.db import connection

from jobqueue import control
from jobqueue.admin import job_actions, words
from jobqueue.conf import options_for
from jobqueue.control import Actor
from jobqueue.models import Action, BulkOperation, ErrorGroup, Rollup, Worker
from jobqueue.storage import storage_for
from tests.admin.making import FINGERPRINT, everything, job, page, worker
from tests.admin.test_pages import MAX_QUERIES
from tests.storage.making import register

pytestmark = pytest.mark.django_db


def folded(text: str, address: str) -> str:
    """Return what is unfolded before a form posts to an address; "" if the form stands open."""
    found = re.findall(r'<details class="jq-ask">(.*?)</details>', text, re.DOTALL)
    return "".join(each for each in found if f'action="{address}"' in each)


def test_running_as_a_new_job_asks_and_requeueing_does_not(admin):
    register(storage_for(connection, options_for("default")))
    subject = job("dead")
    text = admin.get(page("job", subject.pk)).text
    assert folded(text, page("job", subject.pk, "do", "run_again"))
    assert "can happen twice" in text
    requeue = page("job", subject.pk, "do", "requeue")
    assert f'action="{requeue}"' in text
    assert not folded(text, requeue)
    assert "The same job gets a new budget" in text
    Worker.objects.all().delete()
    text = admin.get(page("job", subject.pk)).text
    assert "No worker is alive" in text
    assert folded(text, requeue)


@pytest.mark.parametrize("key", [None, "mail"], ids=["list", "page"])
def test_resuming_a_queue_asks_and_repeats_why_it_was_paused(key, admin):
    control.pause("mail", Actor("kim", "shell"), "provider is down")
    for _ in range(3):
        job("ready", queue="mail")
    asked = folded(admin.get(page("queue", key)).text, page("queue", "mail", "turn", "resume"))
    assert "<bdi>kim</bdi> paused it: <bdi>provider is down</bdi>" in asked
    assert "Jobs that are ready: 3." in asked


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ([], "No other worker is alive"),
        ([{"queues": ["default"]}], "No other worker serves: mail<"),
        ([{"queues": ["default"]}, {"queues": ["mail"], "draining": True}], "serves: mail<"),
        ([{"queues": ["default"]}, {"queues": ["mail"]}], ""),
        ([{"queues": []}], ""),
    ],
    ids=str,
)
def test_draining_a_worker_asks_and_names_what_nobody_else_serves(others, says, admin):
    one = worker(queues=["default", "mail"])
    for other in others:
        key = register(storage_for(connection, options_for("default")))
        Worker.objects.filter(pk=key).update(**other)
    asked = folded(admin.get(page("worker", one.pk)).text, page("worker", one.pk, "drain"))
    assert f'action="{page("worker", one.pk, "drain")}"' in asked
    assert says in asked
    assert ("No other worker" in asked) == bool(says)


def test_running_a_schedule_asks(admin):
    key = everything()["schedule"]
    text = admin.get(page("schedule", key)).text
    assert "beside the plan" in folded(text, page("schedule", key, "turn", "run"))
    assert not folded(text, page("schedule", key, "turn", "disable"))


@pytest.mark.parametrize(
    ("model", "action"), [("worker", "drain"), ("schedule", "run_schedule")], ids=str
)
def test_ticked_rows_are_shown_once_more_before_anything_happens(model, action, admin):
    key = everything()[model]
    Action.objects.all().delete()
    ticked = {"action": action, "_selected_action": [key]}
    answer = admin.post(page(model), ticked | {"index": "0"})
    assert answer.status_code == 200
    assert f'name="_selected_action" value="{key}"' in answer.text
    assert not Action.objects.exists()
    assert admin.post(page(model), ticked | {"confirmed": "1"}).status_code == 302
    assert Action.objects.get().verb == action


# --- all that match -------------------------------------------------------------------------------


def test_before_many_jobs_run_what_keeps_them_from_it_is_said(admin):
    job("dead", queue="mail"), job("ready", queue="default")
    for queue in ("mail", "default"):
        control.pause(queue, Actor("kim", "shell"))
    chosen = {"filter": "queue:mail state:any"}
    text = admin.get(page("job", "matching", "requeue"), chosen).text
    assert "Queue mail is paused by kim" in text
    assert "No worker is alive" in text
    assert "Queue default" not in text
    register(storage_for(connection, options_for("default")))
    assert "No worker is alive" not in admin.get(page("job", "matching", "requeue"), chosen).text
    assert "Queue mail" not in admin.get(page("job", "matching", "discard"), chosen).text


def test_before_jobs_run_into_an_outage_it_is_said(admin):
    job("dead", task="shop.mail"), job("dead", task="shop.charge")
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    Rollup.objects.create(seconds=60, kind="task", at=minute, name="shop.mail", failed=40)
    said = "40 of 40 attempts of shop.mail failed in the last ten minutes"
    for verb, task, known in (
        ("requeue", "shop.mail", True),
        ("requeue", "shop.charge", False),
        ("discard", "shop.mail", False),
    ):
        chosen = {"filter": f"task:{task} state:any"}
        assert (said in admin.get(page("job", "matching", verb), chosen).text) is known


@pytest.mark.parametrize("where", ["matching", "errorgroup", "bulkoperation"])
def test_the_same_is_said_wherever_an_error_is_requeued(where, admin):
    keys = everything()
    chosen = f"fingerprint:{FINGERPRINT} state:dead"
    BulkOperation.objects.update(state="failed", filter=chosen)
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    failing = ErrorGroup.objects.get().task
    Rollup.objects.create(seconds=60, kind="task", at=minute, name=failing, failed=40)
    url = page("job", "matching", "requeue")
    url = f"{url}?filter={chosen}" if where == "matching" else page(where, keys[where])
    assert f"40 of 40 attempts of {failing} failed" in admin.get(url).text


def test_before_one_job_runs_the_same_is_said_on_its_page(admin, django_assert_max_num_queries):
    failing, other = job("dead", task="shop.mail", queue="mail"), job("retrying")
    done, doomed = job("succeeded"), job("running")
    control.pause("mail", Actor("kim", "shell"), "it is down")
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    Rollup.objects.create(seconds=60, kind="task", at=minute, name="shop.mail", failed=40)
    with django_assert_max_num_queries(MAX_QUERIES):
        text = admin.get(page("job", failing.pk)).text
    for said in (
        "No worker is alive",
        "Queue mail is paused by kim. it is down",
        "40 of 40 attempts",
    ):
        assert said in text
    text = admin.get(page("job", other.pk)).text
    assert "No worker is alive" in text
    assert "paused by" not in text
    assert "40 of 40" not in text
    for quiet in (done, doomed):
        assert "No worker is alive" not in admin.get(page("job", quiet.pk)).text


def test_before_an_operation_goes_on_it_is_said_for_how_many_jobs_and_what_stopped_it(admin):
    one = BulkOperation.objects.get(pk=everything()["bulkoperation"])
    url = page("bulkoperation", one.pk)
    turn = page("bulkoperation", one.pk, "turn", "resume")
    error = {"failures": 5, "error": "OperationalError: it took too long"}
    asked = {}
    for state, changes in (("running", {}), ("stopped", {}), ("failed", error)):
        BulkOperation.objects.update(state=state, **changes)
        asked[state] = folded(admin.get(url).text, turn)
    assert not asked["running"]
    for state in ("stopped", "failed"):
        assert "Resume: 6 jobs left" in asked[state]
    assert "such as jobs that died later, are not among them" in admin.get(url).text
    told = "a step failed 5 times in a row, at last with: "
    assert f'{told}<bdi class="jq-message">OperationalError: it took' in admin.get(url).text
    assert "OperationalError: it took" in admin.get(page("bulkoperation")).text
    named = {"filter": f"state:dead fingerprint:{FINGERPRINT}", "left": [job().pk.hex], "seen": 10}
    BulkOperation.objects.update(**named)
    text = admin.get(url).text
    assert "Resume: 1 job left" in text
    assert 'NoSuchOrder</bdi></a> was last seen at <time datetime="' in text
    assert "shop.<wbr>models.<wbr>NoSuchOrder" in admin.get(page("bulkoperation")).text
    BulkOperation.objects.update(total_is_capped=True)
    assert ">Resume…<" in admin.get(url).text


def test_before_jobs_are_discarded_it_is_said_what_that_means(admin):
    one = job("dead")
    for url in (page("job", "matching", "discard") + "?filter=state:dead", page("job", one.pk)):
        assert str(words.MEANINGS["discard"]) in admin.get(url).text


def test_before_an_error_is_requeued_it_is_said_when_it_was_last_seen(admin):
    everything()
    seen = ErrorGroup.objects.get().last_seen
    url = page("job", "matching", "requeue")
    text = admin.get(url, {"filter": f"fingerprint:{FINGERPRINT} state:dead"}).text
    assert f'last seen at <time datetime="{seen.isoformat()}"' in text
    assert "last seen at" not in admin.get(url, {"filter": "state:dead"}).text


def test_many_jobs_are_spread_unless_somebody_says_otherwise(admin, monkeypatch):
    monkeypatch.setattr(job_actions, "SPREAD_FROM", 1)
    job("dead")
    url, chosen = page("job", "matching", "requeue"), {"filter": "state:dead"}
    field = re.compile(r'<input[^>]*name="spread"[^>]*>')
    assert "value=" not in field.search(admin.get(url, chosen).text)[0]
    job("dead")
    assert 'value="10"' in field.search(admin.get(url, chosen).text)[0]
