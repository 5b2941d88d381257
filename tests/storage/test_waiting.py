"""Jobs that wait get other due times, priorities and queues; whatever runs is left alone."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from jobqueue.models import Job
from jobqueue.storage import Storage
from tests.storage.making import (
    AGING_SECONDS,
    buried,
    claim,
    everything,
    insert,
    register,
    row,
    run_sql,
    states,
)
from tests.storage.test_operators import in_every_state

WAITING = ("scheduled", "ready", "blocked", "retrying")
HOUR = timedelta(hours=1)
MILLISECOND = timedelta(milliseconds=1)
"""SQLite's clock has no finer."""


def changes(dues=HOUR):
    """Return every change of waiting jobs, by name."""
    due = timezone.now() + dues
    return {
        "reschedule": lambda s, ids: s.reschedule_many(ids, [due] * len(ids), AGING_SECONDS),
        "run now": lambda s, ids: s.run_now_many(ids, AGING_SECONDS),
        "reprioritize": lambda s, ids: s.reprioritize_many(ids, 7, AGING_SECONDS),
        "move": lambda s, ids: s.move_many(ids, "other"),
    }


def rank_of(job: Job) -> int:
    """Return the rank that a job's due time and priority make."""
    due = max(job.run_at, job.enqueued_at)
    return round(due.timestamp() * 1_000_000) - round(job.priority * AGING_SECONDS * 1_000_000)


@pytest.mark.parametrize("name", list(changes()))
def test_only_waiting_jobs_are_changed(storage: Storage, name: str) -> None:
    found = in_every_state(storage)
    others = {s: row(i).version for s, i in found.items() if s not in WAITING}
    changed = changes()[name](storage, list(found.values()))
    assert sorted(changed) == sorted(found[state] for state in WAITING)
    assert {s: row(found[s]).version for s in others} == others


@pytest.mark.parametrize("name", list(changes()))
def test_a_change_is_seen_in_the_version(storage: Storage, name: str) -> None:
    (job_id,) = insert(storage)
    assert changes()[name](storage, [job_id]) == [job_id]
    assert row(job_id).version == 2


@pytest.mark.parametrize("name", list(changes()))
def test_nobody_to_change_is_nothing(storage: Storage, name: str) -> None:
    before = everything()
    assert changes()[name](storage, []) == []
    assert everything() == before


@pytest.mark.parametrize("name", list(changes()))
def test_rank_is_due_time_less_what_the_priority_is_worth(storage: Storage, name: str) -> None:
    found = in_every_state(storage)
    ids = [*(found[state] for state in WAITING), *insert(storage, priority=3)]
    changes()[name](storage, ids)
    for job_id in ids:
        assert abs(row(job_id).rank - rank_of(row(job_id))) <= 1


@pytest.mark.postgres_only("SQLite has no row locks: another writer's transaction is waited for")
@pytest.mark.parametrize("name", list(changes()))
def test_locked_rows_are_left(storage: Storage, name: str) -> None:
    locked, free = insert(storage, 2)
    with transaction.atomic():
        run_sql(connection, "SELECT 1 FROM jobqueue_job WHERE id = %s FOR UPDATE", [locked])
        assert changes()[name](storage, [locked, free]) == [free]
    assert row(locked).version == 1


# --- reschedule -----------------------------------------------------------------------------------


def test_later_means_scheduled_and_a_retry_stays_one(storage: Storage) -> None:
    found = in_every_state(storage)
    changes()["reschedule"](storage, [found[state] for state in WAITING])
    after = [row(found[state]) for state in WAITING]
    assert [job.state for job in after] == ["scheduled", "scheduled", "scheduled", "retrying"]
    assert [job.reason for job in after[:3]] == ["", "", ""]


def test_now_means_ready_and_a_blocked_job_stays_blocked(storage: Storage) -> None:
    found = in_every_state(storage)
    changes(-HOUR)["reschedule"](storage, [found[state] for state in WAITING])
    after = [row(found[state]) for state in WAITING]
    assert [job.state for job in after] == ["ready", "ready", "blocked", "ready"]
    assert after[2].reason == "unknown task"


def test_a_time_that_has_passed_means_now(storage: Storage) -> None:
    (job_id,) = insert(storage, delay=60.0)
    before = storage.clock()
    changes(-HOUR)["reschedule"](storage, [job_id])
    assert before <= row(job_id).run_at <= storage.clock()


def test_a_job_with_unfinished_parents_stays_blocked_until_they_end(storage: Storage) -> None:
    (job_id,) = insert(storage)
    Job.objects.filter(id=job_id).update(state="blocked", reason="parents", pending=1)
    changes()["reschedule"](storage, [job_id])
    assert (row(job_id).state, row(job_id).reason) == ("blocked", "parents")


def test_each_job_gets_its_own_time(storage: Storage) -> None:
    ids = insert(storage, 3)
    start = timezone.now().replace(microsecond=0) + HOUR
    dues = [start + n * HOUR for n in range(3)]
    storage.reschedule_many(ids[::-1], dues, AGING_SECONDS)
    assert [row(i).run_at for i in ids[::-1]] == dues
    assert len(storage.promote(10, now=start + HOUR)) == 2


# --- requeue at a time ----------------------------------------------------------------------------


def test_dead_letters_are_requeued_for_their_times(storage: Storage) -> None:
    worker = register(storage)
    now_, later = buried(storage, worker), buried(storage, worker)
    start = timezone.now().replace(microsecond=0)
    storage.requeue_many([later, now_], AGING_SECONDS, [start + HOUR, start - HOUR])
    assert states(now_, later) == ["ready", "scheduled"]
    assert row(later).run_at == start + HOUR
    assert (row(later).finished_at, row(later).failures) == (None, 0)
    assert row(later).rank == rank_of(row(later))


def test_the_clock_can_be_moved(storage: Storage) -> None:
    dead = buried(storage)
    now = timezone.now().replace(microsecond=0) + HOUR
    storage.requeue_many([dead], AGING_SECONDS, [now], now=now)
    assert (row(dead).state, row(dead).run_at) == ("ready", now)
    storage.reschedule_many([dead], [now + HOUR], AGING_SECONDS, now=now)
    assert row(dead).state == "scheduled"
    storage.run_now_many([dead], AGING_SECONDS, now=now)
    assert (row(dead).state, row(dead).run_at) == ("ready", now)


# --- run now, priority, queue ---------------------------------------------------------------------


def test_run_now_makes_scheduled_and_retrying_jobs_ready(storage: Storage) -> None:
    found = in_every_state(storage)
    before = storage.clock()
    changes()["run now"](storage, [found[state] for state in WAITING])
    after = {state: row(found[state]) for state in WAITING}
    assert [after[s].state for s in WAITING] == ["ready", "ready", "blocked", "ready"]
    assert before <= after["scheduled"].run_at <= storage.clock()


def test_run_now_takes_no_place_away_from_a_job_that_has_waited(storage: Storage) -> None:
    (job_id,) = insert(storage)
    before = row(job_id)
    changes()["run now"](storage, [job_id])
    assert (row(job_id).rank, row(job_id).run_at) == (before.rank, before.run_at)


def test_a_higher_priority_never_makes_a_job_later(storage: Storage) -> None:
    long_ago = timezone.now() - HOUR
    (old,) = insert(storage, now=long_ago)
    (new,) = insert(storage)
    before = row(old).rank
    storage.reprioritize_many([old], 1, AGING_SECONDS)
    assert row(old).rank == before - AGING_SECONDS * 1_000_000
    assert [c.id for c in claim(storage, register(storage))] == [old, new]


def test_a_lower_priority_never_makes_a_job_sooner(storage: Storage) -> None:
    (job_id,) = insert(storage, priority=5)
    before = row(job_id).rank
    storage.reprioritize_many([job_id], -5, AGING_SECONDS)
    assert row(job_id).priority == -5
    assert row(job_id).rank == before + 10 * AGING_SECONDS * 1_000_000


def test_priority_counts_from_the_due_time_of_a_scheduled_job(storage: Storage) -> None:
    due = timezone.now().replace(microsecond=123_000) + HOUR
    (job_id,) = insert(storage, run_at=due)
    storage.reprioritize_many([job_id], 2, AGING_SECONDS)
    assert row(job_id).state == "scheduled"
    assert row(job_id).rank == rank_of(row(job_id))


def test_a_moved_job_keeps_its_rank_and_is_claimed_there(storage: Storage) -> None:
    (job_id,) = insert(storage)
    before = row(job_id).rank
    storage.move_many([job_id], "other")
    assert (row(job_id).queue, row(job_id).rank) == ("other", before)
    worker = register(storage)
    assert claim(storage, worker) == []
    assert [c.id for c in claim(storage, worker, queues=["other"])] == [job_id]


@pytest.mark.parametrize("name", ["reschedule", "run now"])
def test_a_job_that_would_expire_first_is_to_run_all_the_same(storage: Storage, name: str) -> None:
    early, late = insert(storage, 2, delay=7_200.0)
    now = timezone.now()
    Job.objects.filter(id=early).update(expires_at=now - HOUR)
    Job.objects.filter(id=late).update(expires_at=now + 9 * HOUR)
    changes()[name](storage, [early, late])
    assert row(early).expires_at is None
    assert row(late).expires_at == now + 9 * HOUR
