"""``jobs status`` for people, for programs, and as a probe."""

from datetime import timedelta
from io import StringIO

import pytest
from django.db.models.functions import Now

from jobqueue import control
from jobqueue.engine.rollups import catch_up
from jobqueue.management.jobs_commands.status import watch
from jobqueue.models import Job
from jobqueue.states import Outcome
from tests.statistics.making import attempt, failure, record
from tests.storage.making import buried, insert, register


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def due_ago(job_ids, seconds: float) -> None:
    Job.objects.filter(id__in=job_ids).update(run_at=Now() - timedelta(seconds=seconds))


def test_page_names_queues_workers_and_states(storage, jobs):
    dead_worker = register(storage, name="crashed")
    storage.mark_dead(dead_worker, "exit code -9")
    storage.mark_dead(register(storage, name="resting"), "stopped")
    register(storage, name="steady")
    buried(storage)
    insert(storage, 2, queue="mail")

    out = jobs("status").out

    for text in ("mail", "steady", "alive", "crashed", "dead: exit code -9", "OK"):
        assert text in out
    assert "dead: stopped" not in out


def test_json_has_stable_names(storage, jobs):
    insert(storage, 2)
    answer = jobs("status", "--json").json
    assert answer["counts"]["ready"] == {"value": 2, "relation": "eq"}
    assert answer["backlog"] == {"value": 2, "relation": "eq"}
    assert {"queues", "workers", "dead_workers", "oldest_ready", "oldest_unpromoted"} <= set(answer)
    assert {"oldest_unreaped", "unknown_tasks", "hints", "health", "problems"} <= set(answer)
    assert "no_worker" in [finding["code"] for finding in answer["findings"]]
    assert len(answer["notices"]) == len(answer["findings"])


def test_probe_passes_within_its_bounds(storage, jobs):
    register(storage)
    due_ago(insert(storage), 30)
    assert jobs("status", "--max-age", "1m", "--max-backlog", 1).code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--max-age", "10"], "waited 30 s"), (["--max-backlog", "0"], "1 job is ready")],
)
def test_probe_fails_with_the_reason(storage, jobs, words, says):
    register(storage)
    due_ago(insert(storage), 30)
    ran = jobs("status", *words)
    assert ran.code == 1
    assert says in str(ran.error)
    assert "WRONG" in ran.out


def test_due_jobs_that_nobody_promotes_fail_it_without_bounds(storage, jobs):
    due_ago(insert(storage, delay=60.0), 45)
    ran = jobs("status", "--json")
    assert ran.code == 1
    assert len(ran.json["problems"]) == 1


def test_jobs_that_wait_while_no_worker_lives_fail_it_without_bounds(storage, jobs):
    due_ago(insert(storage), 45)
    ran = jobs("status")
    assert ran.code == 1
    assert "WRONG  No worker is alive." in ran.out


def test_the_last_hour_is_summed_up(storage, jobs):
    assert "last hour" not in jobs("status").out
    now = storage.clock()
    lost = failure(now, waited=2.0, ran=0.5, outcome=Outcome.LOST)
    record(attempt(now, waited=2.0, ran=0.5), failure(now, waited=2.0, ran=0.5), lost)
    catch_up(storage)
    assert "last hour: 3 attempts, 1 failed, 1 interrupted" in jobs("status").out


def test_what_somebody_should_look_at_is_not_followed_by_an_all_clear(storage, jobs):
    out = jobs("status").out
    assert "WARN   No worker is alive." in out
    assert "Nothing is late" not in out


def test_probe_may_fail_for_warnings_too(storage, jobs):
    assert jobs("status").code == 0
    ran = jobs("status", "--fail-on", "warning")
    assert ran.code == 1
    assert "No worker is alive" in str(ran.error)


def test_backlog_is_counted_as_far_as_its_bound(storage, jobs, monkeypatch):
    monkeypatch.setattr("jobqueue.management.jobs_commands.status.COUNT_LIMIT", 1)
    insert(storage, 4)
    assert "4 jobs are ready, more than 3" in str(jobs("status", "--max-backlog", 3).error)
    assert jobs("status", "--max-backlog", 4).code == 0


def test_colors_are_for_terminals(storage, jobs, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("DJANGO_COLORS", raising=False)
    assert "\x1b[" not in jobs("status").out
    assert "\x1b[" in jobs("status", "--force-color").out


def test_no_color_is_obeyed_on_a_terminal(storage, jobs, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in jobs("status", out=Terminal()).out


def test_json_on_a_terminal_is_indented(jobs):
    assert jobs("status", "--json", out=Terminal()).out.count("\n") > 10


def test_watch_looks_again_until_interrupted():
    looks, pauses = [], []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    watch(lambda: looks.append(1), 2.0, sleep)
    assert len(looks) == 3
    assert pauses == [2.0, 2.0, 2.0]


def test_watched_page_fails_for_nothing_and_clears_a_terminal(storage, jobs, monkeypatch):
    due_ago(insert(storage), 30)
    monkeypatch.setattr(
        "jobqueue.management.jobs_commands.status.time.sleep", interrupted, raising=True
    )
    monkeypatch.setenv("NO_COLOR", "1")
    ran = jobs("status", "--watch", "1", "--max-age", "1", out=Terminal())
    assert ran.code == 0
    assert ran.out.startswith("\x1b[H\x1b[2J")


def interrupted(seconds):
    raise KeyboardInterrupt


def test_paused_queue_says_who_and_why(storage, jobs):
    control.pause("mail", control.Actor("kim", "page"), "printer on fire")
    out = jobs("status").out
    assert "paused by kim" in out
    assert "printer on fire" in out


def test_unknown_tasks_are_listed(storage, jobs):
    insert(storage)
    storage.park_unknown(["other.task"], 10)
    out = jobs("status").out
    assert "task no live worker has" in out
    assert "app.task" in out


@pytest.mark.parametrize("words", [["--max-age", "soon"], ["--max-backlog", "-1"]])
def test_bad_bound_is_refused(jobs, words):
    assert jobs("status", *words).code != 0


def test_watching_without_a_pause_is_refused(jobs):
    ran = jobs("status", "--watch", "0")
    assert ran.code == 1
    assert "--watch takes" in str(ran.error)
