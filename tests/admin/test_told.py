"""What an operator at night is told: what fails, what an action takes, what has not ended yet."""

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from jobqueue import control
from jobqueue.conf import options_for
from jobqueue.control import Actor
from jobqueue.models import Action, ErrorGroup, Job, Limit, Queue, Rollup
from jobqueue.storage import storage_for
from tests.admin.making import NOW, attempt, everything, job, page
from tests.admin.test_pages import MAX_QUERIES
from tests.storage.making import register

pytestmark = pytest.mark.django_db

KIM = Actor("kim", "shell")


def minute() -> datetime:
    """Return the last whole minute."""
    return datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)


def ended(at: datetime, **counts: int) -> None:
    Rollup.objects.create(seconds=60, kind="task", at=at, queue="mail", name="app.one", **counts)


# --- queues ---------------------------------------------------------------------------------------


def test_a_queue_whose_attempts_fail_is_no_healthy_one(admin):
    Queue.objects.create(name="mail")
    last = minute()
    ended(last - timedelta(minutes=29), succeeded=900)
    ended(last, failed=30, succeeded=1)
    for address in (page("queue"), page("queue", "mail")):
        text = admin.get(address).text
        assert "</span> failing</span>" in text
        assert '<span class="jq-bad">30 of 31 attempts failed in the last ten minutes<' in text
    ended(last - timedelta(minutes=1), succeeded=40)
    for address in (page("queue"), page("queue", "mail")):
        assert "failing</span>" not in admin.get(address).text


# --- limits ---------------------------------------------------------------------------------------


def test_a_limit_says_what_each_button_does_and_why_it_was_set(admin):
    control.set_limit("queue:mail", KIM, running=2, reason="gently")
    address = page("limit", "queue_3Amail")
    text = html.unescape(admin.get(address).text)
    assert re.search(r'name="reason" value="gently"', text)
    assert "At once any number starts" in text
    assert "At once the code decides again" in text
    assert "now it says: no limit." in text
    assert "<dt>The code says</dt><dd>no limit</dd>" in text
    for turn in ("lift", "reset"):
        action = page("limit", "queue_3Amail", "turn", turn)
        assert re.search(rf'<details class="jq-ask">[^§]*?action="{action}"', text)


def test_what_a_reset_leads_to_is_for_a_key_what_holds_for_its_name(admin):
    Limit.objects.create(key="customer", running=3, code_running=3, source="app")
    control.set_limit("customer:42", KIM, running=9)
    text = admin.get(page("limit", "customer_3A42")).text
    holds = "at most 3 at once, as for each key of customer"
    assert f"<dt>The code says</dt><dd>{holds}</dd>" in text
    assert f"now it says: {holds}." in text
    assert holds in admin.get(page("limit")).text


# --- a job ----------------------------------------------------------------------------------------


def timeline(admin, subject: Job) -> list[str]:
    """Return the words of a job's timeline, the newest first."""
    text = admin.get(page("job", subject.pk)).text
    (listed,) = re.findall(r'<ol class="jq-timeline">(.*?)</ol>', text, re.DOTALL)
    return re.findall(r"</span> ([a-z]+)</span>", listed)


def lived(number: int, state: str = "ready", **changes) -> Job:
    """Return a job that failed so many times, an hour apart."""
    subject = job(state, attempts=number, fence=number, max_attempts=2, failures=0, **changes)
    for n in range(number):
        at = NOW + timedelta(hours=n)
        attempt(subject, n + 1, started_at=at, finished_at=at + timedelta(minutes=1))
    return subject


def acted(subject: Job, verb: str, minutes: int) -> None:
    at = NOW + timedelta(minutes=minutes)
    Action.objects.create(at=at, actor="kim", surface="shell", verb=verb, job_id=subject.pk)


def test_the_death_before_a_requeue_is_in_the_timeline(admin):
    subject = lived(1)
    acted(subject, "requeue", 5)
    assert timeline(admin, subject) == ["note", "dead", "failed", "enqueued"]
    after = lived(2, "dead", finished_at=NOW + timedelta(hours=3))
    acted(after, "requeue", 5)
    assert timeline(admin, after) == ["dead", "failed", "note", "dead", "failed", "enqueued"]


def test_the_death_before_a_bulk_operation_is_in_the_timeline(admin):
    """It leaves no action of the job, but attempts beyond what the job had."""
    assert timeline(admin, lived(3)) == ["failed", "dead", "failed", "failed", "enqueued"]
    assert timeline(admin, lived(2)) == ["dead", "failed", "failed", "enqueued"]
    assert timeline(admin, lived(1)) == ["failed", "enqueued"]


def test_a_job_that_was_cancelled_between_two_attempts_had_not_died(admin):
    subject = lived(1)
    acted(subject, "cancel", 5)
    acted(subject, "requeue", 6)
    assert timeline(admin, subject) == ["note", "note", "failed", "enqueued"]


def test_a_log_says_what_of_it_is_kept(admin, settings):
    options = {"LOG_LINES": 80}
    settings.TASKS = {"default": {**settings.TASKS["default"], "OPTIONS": options}}
    text = admin.get(page("job", everything()["job"])).text
    kept = "Of each attempt that wrote any, the first and the last lines are kept, 80 in all, for"
    assert f"{kept} as long as the job is" in text


# --- lists ----------------------------------------------------------------------------------------


def test_a_task_that_no_worker_knows_can_be_chosen(admin, django_assert_max_num_queries):
    job("blocked", task="gone.task")
    assert '<a href="?task=gone.task">' in admin.get(page("job")).text
    from_the_overview = {"state": "blocked", "q": 'reason:"unknown task"'}
    with django_assert_max_num_queries(MAX_QUERIES):
        text = admin.get(page("job"), from_the_overview).text
    assert re.search(r"task=gone\.task[^>]*>\s*<bdi", text)


def test_the_task_of_a_dead_letter_can_be_chosen_when_its_code_is_gone(admin):
    everything()
    ErrorGroup.objects.update(task="gone.task")
    assert '<a href="?task=gone.task">' in admin.get(page("deadletter")).text


def test_ticked_jobs_do_not_run_into_an_outage_unasked(admin):
    register(storage_for(connection, options_for("default")))
    subject, other = job("dead", task="app.one", queue="mail"), job("dead")
    ticked = {"action": "requeue_selected", "_selected_action": [subject.pk], "index": "0"}
    control.pause("mail", KIM, "it is down")
    ended(minute(), failed=30)
    text = admin.post(page("job"), ticked).text
    assert "Queue mail is paused by kim. it is down" in text
    assert "30 of 30 attempts of app.one failed" in text
    assert Job.objects.get(pk=subject.pk).state == "dead"
    confirmed = page("job", "selected", "requeue")
    assert f'action="{confirmed}"' in text
    admin.post(confirmed, ticked)
    assert Job.objects.get(pk=subject.pk).state == "ready"
    admin.post(page("job"), ticked | {"_selected_action": [other.pk]})
    assert Job.objects.get(pk=other.pk).state == "ready", "nothing warns of this one"


@pytest.mark.parametrize(
    ("verb", "state", "says"),
    [
        ("cancel", "ready", "A job that waits ends at once and will not run."),
        ("discard", "dead", "The job is given up and will not run"),
    ],
)
def test_who_gives_a_job_up_is_told_what_it_means_and_until_when(
    admin, settings, verb, state, says
):
    """On the job's page, for ticked jobs, and for all that match."""
    mail, other = job(state, queue="mail"), job(state)
    retention = {"cancelled": None, "queues": {"mail": {"cancelled": 2 * 86_400}}}
    settings.TASKS = {"default": {**settings.TASKS["default"], "OPTIONS": {"RETENTION": retention}}}

    def ticked(*jobs: Job) -> str:
        marked = [each.pk for each in jobs]
        posted = {"action": f"{verb}_selected", "_selected_action": marked, "index": "0"}
        return admin.post(page("job"), posted).text

    deleted = "The row of a cancelled job is deleted 2 d after its end."
    matching = admin.get(page("job", "matching", verb), {"filter": "queue:mail"}).text
    for text in (admin.get(page("job", mail.pk)).text, ticked(mail), matching):
        assert says in text
        assert "Only Requeue brings" in text
        assert deleted in text
    assert "The row of a cancelled job is kept: RETENTION deletes none." in ticked(other)
    assert "is deleted when RETENTION says so for its queue." in ticked(mail, other)


# --- errors and schedules -------------------------------------------------------------------------


def test_an_error_says_that_the_queue_of_its_dead_letters_is_paused(admin):
    key = everything()["errorgroup"]
    Job.objects.filter(state="dead").update(queue="mail")
    assert "Queue mail is paused by kim. spam" in admin.get(page("errorgroup", key)).text


def test_the_last_step_of_a_chart_is_not_over(admin):
    key = everything()["errorgroup"]
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    Rollup.objects.create(seconds=3600, kind="error", at=hour, name=key, failed=7)
    ErrorGroup.objects.update(last_seen=datetime.now(UTC))
    text = admin.get(page("errorgroup", key), {"period": "7d"}).text
    axis, table = text.split("<details><summary>As a table", 1)
    for part in (axis, table):
        assert '</time> <span class="jq-note">(not over yet)</span>' in part


def test_a_schedule_shows_a_run_that_was_started_by_hand_and_has_not_ended(admin):
    key = everything()["schedule"]
    address = page("schedule", key)
    ticked = job("ready", schedule="nightly", tick=NOW)
    by_hand = job("running", schedule="nightly", enqueued_at=NOW + timedelta(hours=1))
    over = job("succeeded", schedule="nightly")
    text = admin.get(address).text
    live = text[text.index('id="jq-live"') : text.index('id="jq-next"')]
    assert re.findall(r">(hand|its plan)</td>", live) == ["hand", "its plan"]
    assert live.index(page("job", by_hand.pk)) < live.index(page("job", ticked.pk))
    assert page("job", over.pk) not in live
    assert 'class="button jq-bad">Delete schedule…' in text
