"""What a newcomer reads: what is left out, in which words, in which order, and what to do next."""

import html
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from jobqueue import control
from jobqueue.admin import marks, schedule_forms, words
from jobqueue.control import Actor
from jobqueue.models import Job, Queue, Rollup, Schedule, Tick
from tests.admin import tasks  # noqa: F401 - registers one that staff may submit
from tests.admin.making import NOW, around, attempt, everything, job, page, worker

pytestmark = pytest.mark.django_db

KIM = Actor("kim", "shell")


def sidebar(text: str) -> list[str]:
    """Return the choices of the filters beside a list."""
    (found,) = re.findall(r'id="changelist-filter"(.*?)</(?:nav|search)>', text, re.DOTALL)
    return [html.unescape(each.strip()) for each in re.findall(r"<a[^>]*>([^<]*)</a>", found)]


def test_a_worker_that_was_told_to_stop_has_not_died(admin):
    gone = {"dead": True, "dead_at": NOW}
    stopped = worker(dead_reason="stopped", **gone)
    text = admin.get(page("worker", stopped.pk)).text
    assert "<dt>Stopped</dt>" in text
    assert "<dt>Died" not in text
    killed = worker(dead_reason="life lock lost", **gone)
    assert "<dt>Died of</dt>" in admin.get(page("worker", killed.pk)).text


def test_an_attempt_after_a_crash_waited_from_the_crash_on(admin):
    subject = job("running", attempts=2, fence=3)
    crash = NOW + timedelta(seconds=60)
    attempt(subject, 1, outcome="lost", charged=False, finished_at=crash)
    back = crash + timedelta(seconds=2)
    attempt(subject, 2, started_at=back, finished_at=back + timedelta(seconds=3))
    text = admin.get(page("job", subject.pk)).text
    assert re.findall(r"waited ([^\n·]*?) *·", text) == ["2 s", "0 s"]


def test_failures_before_a_requeue_are_told_apart(admin):
    subject = job("dead", attempts=2, fence=2)
    attempt(subject, 1), attempt(subject, 2)
    assert (
        "<dd>2, 1 of them since it was requeued; 5 make it a dead letter"
        in admin.get(page("job", subject.pk)).text
    )
    Job.objects.update(failures=2)
    assert "<dd>2; 5 make it a dead letter" in admin.get(page("job", subject.pk)).text


def test_an_error_is_drawn_over_the_period_that_was_asked_for(admin):
    key = everything()["errorgroup"]
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for seconds in (60, 3_600):
        Rollup.objects.create(seconds=seconds, kind="error", at=hour, name=key, failed=2)
    listed = admin.get(page("errorgroup"), {"period": "1h"}).text
    assert f'href="{page("errorgroup", key)}?period=1h"' in listed
    for period, step in (("1h", "1 min"), ("1d", "1 h"), ("no such", "1 h")):
        text = admin.get(page("errorgroup", key), {"period": period}).text
        assert f"The highest bar: 2 in {step}<" in text


def test_a_worker_has_no_more_busy_slots_than_it_has(admin):
    one = worker(slots=1)
    for _ in range(3):
        job("running", worker=one.pk)
    text = admin.get(page("worker")).text
    assert ">1/1<" in text
    assert "2 claimed" in text


# --- pieces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (-3, "0 s"),
        (0.0004, "1 ms"),
        (0.495, "495 ms"),
        (0.9999, "1 s"),
        (1.26, "1.3 s"),
        (16.7, "17 s"),
        (59.6, "1 min"),
        (250, "4 min 10 s"),
        (11_100, "3 h 5 min"),
        (187_200, "2 d 4 h"),
    ],
)
def test_spans_of_time_are_rounded_and_said_as_on_the_live_page(seconds, shown):
    assert marks.span(seconds) == shown


def test_names_break_at_dots_and_underscores():
    assert "shop.<wbr>tasks.<wbr>charge_<wbr>card" in marks.dotted("shop.tasks.charge_card")
    assert "&lt;b&gt;.<wbr>x" in marks.dotted("<b>.x")


# --- lists ----------------------------------------------------------------------------------------


def test_a_list_says_what_it_hides_and_shows_it_when_asked(admin):
    done, dead = job("succeeded"), job("dead")
    text = admin.get(page("job")).text
    assert "Live jobs only" in text
    hidden = re.search(r'<p class="help jq-hidden">(.*?)</p>', text)[1]
    for label, listed in (("Dead ones", {dead}), ("Jobs in every state", {dead, done})):
        (address,) = re.findall(rf'<a href="([^"]*)">{label}', hidden)
        shown = admin.get(page("job") + html.unescape(address)).text
        assert {each for each in (dead, done) if str(each.pk) in shown} == listed
        assert "jq-hidden" not in shown
    searched = admin.get(page("job"), {"q": "queue:default"}).text
    assert "Jobs that succeeded or were cancelled are not shown." in searched
    assert str(dead.pk) in searched, "a search looks at dead letters, too"
    assert "jq-hidden" not in admin.get(page("deadletter")).text


def test_a_list_without_rows_offers_nothing_to_do_to_them(admin):
    job("ready")
    assert "Ticked rows" in admin.get(page("job")).text
    assert "Ticked rows" not in admin.get(page("job"), {"q": "sate:dead"}).text
    empty = admin.get(page("job"), {"q": "queue:nowhere"}).text
    assert "Ticked rows" not in empty
    assert "Nothing matches." in empty


@pytest.mark.parametrize("model", ["job", "deadletter", "schedule", "attempt", "action", "limit"])
def test_a_list_says_in_which_zone_its_times_are(model, admin):
    everything()
    with timezone.override("Europe/Paris"):
        assert admin.get(page(model)).text.count("Times are in Europe/Paris; point at one") == 1


def test_filters_say_what_the_rows_say(admin):
    everything()
    job("retrying")
    jobs = sidebar(admin.get(page("job")).text)
    assert {words.state(state) for state in ("retrying", "dead", "succeeded")} <= set(jobs)
    workers = admin.get(page("worker")).text
    assert words.state("draining") in sidebar(workers)
    actions = admin.get(page("action")).text
    assert words.surface("shell") in sidebar(actions)
    assert len(sidebar(actions)) < 15


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("", "live (waiting or running)"),
        ("queue=mail", "live (waiting or running)"),
        ("q=queue:mail", "live (waiting or running) or dead"),
        ("q=state:dead", "dead"),
        ("q=state:dead,ready", ""),
        ("q=-state:dead x", ""),
    ],
)
def test_the_filter_of_states_marks_what_is_listed(admin, query, marked):
    """And nothing where the search says more of states than one choice does."""
    assert marked_by("state", admin.get(f"{page('job')}?{query}").text) == [marked] * bool(marked)


@pytest.mark.parametrize(
    ("query", "marked"),
    [("", ["All"]), ("q=state:dead", ["All"]), ("q=queue:mail", ["mail"]), ("q=-queue:mail", [])],
)
def test_no_filter_claims_to_show_all_of_what_the_search_chooses(admin, query, marked):
    assert marked_by("queue", admin.get(f"{page('job')}?{query}").text) == marked


def marked_by(title: str, text: str) -> list[str]:
    """Return the choices of a filter that are said to be in effect."""
    choices = re.search(rf'data-filter-title="{title}".*?</ul>', text, re.DOTALL)[0]
    return re.findall(r'<li class="selected">\s*<a [^>]*>([^<]*)', choices)


def test_a_job_that_succeeded_has_an_attempt_and_no_failure(admin):
    subject = job("succeeded")
    assert '<span class="jq-note">1 attempt</span>' in admin.get(page("job") + "?state=any").text
    text = re.sub(r"\s+", " ", admin.get(page("job", subject.pk)).text)
    assert "<dt>Attempts that ended</dt><dd>1</dd>" in text
    assert "<dt>Of these failed</dt><dd>0; 5 make it a dead letter</dd>" in text
    job("dead", attempts=7, fence=7, failures=5)
    assert "5 of 5 failures" in admin.get(page("deadletter")).text


@pytest.mark.parametrize(("model", "title"), [("schedule", "Schedules"), ("worker", "Workers")])
def test_a_list_is_called_by_what_is_in_it(model, title, admin):
    assert f"<h1>{title}</h1>" in admin.get(page(model)).text


# --- schedules ------------------------------------------------------------------------------------


def test_a_schedule_that_nobody_ticks_is_late(admin):
    key = everything()["schedule"]
    for address in (page("schedule"), page("schedule", key)):
        Schedule.objects.update(look_at=timezone.now())
        assert "</span> ticking</span>" in admin.get(address).text
        Schedule.objects.update(look_at=timezone.now() - timedelta(hours=1))
        text = admin.get(address).text
        assert "</span> late</span>" in text
        assert "</span> ticking</span>" not in text
    assert "nobody ticks it: start a worker" in text


def test_a_schedule_is_told_in_the_words_of_its_form(admin):
    key = everything()["schedule"]
    page_of_one = admin.get(page("schedule", key)).text
    assert "<dt>Its jobs run</dt><dd>beside earlier ones</dd>" in page_of_one
    listed = admin.get(page("schedule")).text
    for words_of_it in ("beside earlier ones", "one job for all ticks that were missed"):
        assert words_of_it in listed
        assert words_of_it in page_of_one


def test_list_and_page_of_a_schedule_tell_the_same_last_tick(admin):
    key = everything()["schedule"]
    Schedule.objects.update(last_tick=NOW + timedelta(days=1))  # looked at, and nothing was made
    Tick.objects.create(schedule_id=key, tick=NOW, at=NOW, outcome="missed")
    for address in (page("schedule"), page("schedule", key)):
        text = admin.get(address).text
        assert "2026-06-01 12:00:00</time>" in text
        assert "2026-06-02 12:00:00</time>" not in text


def test_times_that_are_typed_for_a_schedule_say_whose_zone_they_are_in(admin):
    text = html.unescape(admin.get(page("schedule", "add")).text)
    assert text.count("In this schedule's time zone.") == 3
    assert "Times are in" not in text


# --- queues ---------------------------------------------------------------------------------------


def test_a_queue_is_paused_and_resumed_from_the_list(as_staff):
    client = as_staff("view_queue", "pause_queue")
    job("ready")
    text = client.get(page("queue")).text
    turn = page("queue", "default", "turn", "pause")
    assert f'action="{turn}"' in text
    given = {"reason": "stocktaking", "next": page("queue")}
    text = client.post(turn, given, follow=True).text
    assert "by <bdi>kim</bdi>: <bdi>stocktaking</bdi>" in text
    client.post(page("queue", "default", "turn", "resume"), {"next": page("queue")})
    assert not Queue.objects.get(name="default").paused


def test_who_may_not_pause_is_offered_no_button(as_staff):
    job("ready")
    text = as_staff("view_queue").get(page("queue")).text
    assert "default" in text
    assert "/turn/" not in text


def test_a_reason_that_was_not_given_leaves_no_colon(admin):
    control.pause("mail", KIM)
    for address in (page("queue"), page("queue", "mail")):
        text = admin.get(address).text
        assert "by <bdi>kim</bdi>" in text
        assert "<bdi></bdi>" not in text
        assert ": </" not in text
        assert "</bdi>:" not in text
        assert "</time>:" not in text


# --- a job ----------------------------------------------------------------------------------------


def test_attempts_and_timeline_begin_with_the_newest(admin):
    subject = job("dead", attempts=3, fence=3)
    around(subject)
    for number in (2, 3):
        attempt(subject, number)
    text = admin.get(page("job", subject.pk)).text
    timeline, rest = text[text.index("jq-timeline") :].split("</ol>", 1)
    assert re.findall(r"Attempt (\d) ended after", timeline) == ["3", "2", "1"]
    assert timeline.index("Ended") < timeline.index("Enqueued")
    assert re.findall(r"<b>Attempt (\d)</b>", rest) == ["3", "2", "1"]
    assert text.count("The newest first.") == 3
    assert NOW.strftime("%Y-%m-%d") in timeline


# --- nothing to choose ----------------------------------------------------------------------------


@pytest.mark.parametrize("address", [("job", "submit"), ("schedule", "add")])
def test_without_a_task_for_staff_the_form_says_how_one_comes_to_be(address, admin, monkeypatch):
    assert "Tasks whose definition says" in admin.get(page(*address)).text
    monkeypatch.setattr(schedule_forms, "task_names", lambda: ["tests.admin.tasks.not_offered"])
    text = html.unescape(admin.get(page(*address)).text)
    assert 'Write @task(expose={"staff"})' in text
