"""Status: what is going on, and what is wrong with it."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from jobqueue import control
from jobqueue.engine.counts import Count
from jobqueue.engine.findings import findings, notices, problems
from jobqueue.models import Job, Worker
from jobqueue.storage.connections import transaction_on
from tests.storage.making import analyze, buried, claimed, insert, register, run_sql


def due_ago(job_ids, seconds: float, **changes) -> None:
    Job.objects.filter(id__in=job_ids).update(run_at=Now() - timedelta(seconds=seconds), **changes)


def test_empty_system_is_healthy(storage):
    current = control.status()
    # What other tests have deleted may not have been vacuumed yet.
    assert {finding.code for finding in findings(current)} - {"dead_rows"} == {"no_worker"}
    assert problems(current) == []
    assert set(current.counts.values()) == {Count(0)}
    assert [q.name for q in current.queues] == ["default", "mail"]
    assert current.hints in ("postgres", "redis", "none")


def test_jobs_are_counted_by_state_and_queue(storage):
    buried(storage)
    insert(storage, 2)
    insert(storage, delay=60.0)
    insert(storage, queue="elsewhere")

    current = control.status()

    assert (current.counts["ready"], current.counts["scheduled"]) == (Count(3), Count(1))
    assert current.counts["dead"] == Count(1)
    queues = {q.name: q.ready.value for q in current.queues}
    assert queues == {"default": 2, "elsewhere": 1, "mail": 0}


def test_nothing_is_counted_further_than_asked(storage, monkeypatch):
    # What the planner expects depends on what other tests have left behind.
    monkeypatch.setattr(type(storage), "estimated_count", lambda self, state: None)
    insert(storage, 5)
    insert(storage, 5, delay=60.0)
    current = control.status(count_limit=3)
    assert [str(current.counts[state]) for state in ("ready", "scheduled")] == ["3+", "3+"]
    assert str(current.counts["retrying"]) == "0+"
    assert str(current.queues[0].ready) == "3+"
    assert str(current.backlog) == "3+"


@pytest.mark.postgres_only("SQLite has no estimates")
def test_beyond_the_limit_the_estimate_of_the_database_is_shown(storage):
    insert(storage, 500)
    analyze("jobqueue_job")
    ready = control.status(count_limit=100).counts["ready"]
    assert ready.relation == "estimate"
    assert 400 < ready.value < 600


def test_backlog_over_its_bounds_is_a_problem(storage):
    register(storage)
    ids = insert(storage, 3)
    due_ago(ids, 120)
    current = control.status()

    assert problems(current, max_age=600, max_backlog=3) == []
    (old,) = problems(current, max_age=60)
    assert "120 s" in str(old)
    (many,) = problems(current, max_backlog=2)
    assert "3 jobs are ready" in str(many)


def test_paused_queue_counts_against_no_bound_but_is_shown(storage, actor):
    due_ago(insert(storage), 3600)
    control.pause("default", actor, "maintenance")
    current = control.status()

    assert problems(current, max_age=1, max_backlog=0) == []
    assert any("): maintenance; 1 job waits" in str(notice) for notice in notices(current))


def test_due_job_that_nobody_promotes_is_always_a_problem(storage):
    ids = insert(storage, delay=60.0)
    due_ago(ids, 45)
    (late,) = problems(control.status())
    assert (late.code, "runworker" in str(late)) == ("unpromoted", True)


def test_job_of_a_dead_worker_that_nobody_takes_back_is_always_a_problem(storage):
    held = claimed(storage)
    storage.mark_dead(held.worker, "test")
    Worker.objects.update(dead_at=Now() - timedelta(seconds=45))
    Job.objects.update(claimed_at=Now() - timedelta(seconds=45))

    (late,) = problems(control.status())
    assert (late.code, "reaper" in str(late)) == ("unreaped", True)


def test_workers_alive_and_dead_are_listed(storage):
    alive, dead = register(storage), register(storage)
    storage.mark_dead(dead, "killed")

    current = control.status()

    assert [w.id for w in current.workers] == [alive]
    assert not current.workers[0].is_expired
    assert [(w.id, w.reason) for w in current.dead_workers] == [(dead, "killed")]
    assert not any("No worker" in str(notice) for notice in notices(current))


def test_absence_of_workers_is_noticed(storage):
    assert any("runworker" in str(notice) for notice in notices(control.status()))


def test_blocked_jobs_of_unknown_tasks_are_counted_by_task(storage):
    insert(storage, 2)
    storage.park_unknown(["other.task"], 10)
    current = control.status()
    assert current.unknown_tasks == {"app.task": Count(2)}
    assert current.blocked == {"unknown task": Count(2)}
    assert any("2 jobs are blocked" in str(notice) for notice in notices(current))


@pytest.mark.postgres_only("SQLite has no horizon")
def test_oldest_transaction_is_named(storage, other):
    with transaction_on(other.connection):
        run_sql(other.connection, "SET LOCAL application_name = 'report'")
        run_sql(other.connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        run_sql(other.connection, "SELECT count(*) FROM jobqueue_job")
        insert(storage)
        holder = control.status().health.horizon
    assert holder is not None
    assert (holder.kind, holder.name) == ("session", "report")
    assert holder.transactions >= 1


def test_hints_that_cannot_be_sent_do_not_hide_the_rest(storage, settings):
    settings.TASKS = {
        "default": {**settings.TASKS["default"], "OPTIONS": {"HINTS": "redis", "REDIS_URL": None}}
    }
    current = control.status()
    assert current.hints == "unusable"
    assert current.vendor == connection.vendor
