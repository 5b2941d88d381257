"""Jobs that must start in time: no claim takes them after it, and a sweep cancels them."""

from datetime import UTC, datetime, timedelta

import pytest

from jobqueue.models import Job
from jobqueue.storage.records import FRONT
from tests.storage.making import QUEUE, TASK, claim, ending, insert, new_job, register, row, states

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER, TOO_LATE = NOON + timedelta(seconds=59), NOON + timedelta(seconds=60)
BY_TIME, BY_DELAY = {"expires_at": TOO_LATE}, {"expires_in": 60.0}

in_time = pytest.mark.parametrize("expiry", [BY_TIME, BY_DELAY], ids=["time", "delay"])


@in_time
def test_a_job_is_claimed_until_its_time_has_come_and_never_after(storage, expiry):
    worker = register(storage)
    insert(storage, 2, now=NOON, **expiry)
    assert len(claim(storage, worker, 1, now=LATER)) == 1
    assert claim(storage, worker, 1, now=TOO_LATE) == []


def test_a_suspect_that_must_run_alone_expires_too(storage):
    worker = register(storage)
    insert(storage, **BY_TIME)
    Job.objects.update(alone=True)
    assert storage.claim_alone(worker, [QUEUE], [TASK], now=TOO_LATE) == []
    assert len(storage.claim_alone(worker, [QUEUE], [TASK], now=LATER)) == 1


def test_an_expired_job_counts_as_nothing_a_worker_could_take(storage):
    insert(storage, expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    (window,) = storage.read_windows([QUEUE], [FRONT], [TASK])
    assert not window.is_usable
    Job.objects.update(alone=True)
    assert storage.alone_waiting([QUEUE], [TASK]) == 0


@in_time
def test_what_has_not_started_in_time_is_cancelled(storage, expiry):
    (job,) = insert(storage, now=NOON, **expiry)
    forever = insert(storage, now=NOON)[0]
    assert storage.expire(10, LATER) == []
    assert storage.expire(10, TOO_LATE) == [(job, "default", TASK)]
    ended = row(job)
    assert (ended.state, ended.reason, ended.finished_at) == ("cancelled", "expired", TOO_LATE)
    assert states(forever) == ["ready"]


def test_every_waiting_state_expires_and_nothing_else(storage):
    worker = register(storage)
    (scheduled,) = insert(storage, run_at=NOON + timedelta(days=1), now=NOON, **BY_TIME)
    running, retrying = insert(storage, 2, now=NOON, **BY_TIME)
    held = {each.id: each for each in claim(storage, worker, now=NOON)}
    again = ending(held[retrying], "retrying", outcome="failed", charged=True, delay=5.0)
    storage.end_many([again], now=NOON)
    (ready,) = insert(storage, now=NOON, **BY_TIME)
    (parked,) = insert(storage, now=NOON, task="app.unknown", **BY_TIME)
    storage.park_unknown([TASK], 10)

    assert {job.id for job in storage.expire(10, TOO_LATE)} == {scheduled, retrying, ready, parked}
    assert states(running) == ["running"]
    assert storage.expire(10, TOO_LATE) == []


def test_a_sweep_takes_the_earliest_first_and_no_more_than_it_may(storage):
    jobs = [new_job(expires_at=NOON - timedelta(seconds=n)) for n in (1, 3, 2)]
    storage.insert_jobs(jobs, NOON - timedelta(hours=1))
    assert {job.id for job in storage.expire(2, NOON)} == {jobs[1].id, jobs[2].id}


def test_requeueing_an_expired_job_lets_it_run(storage):
    worker = register(storage)
    soon, past = datetime(2090, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
    (expired,), (cancelled,) = insert(storage, expires_at=past), insert(storage, expires_at=soon)
    storage.expire(10)
    storage.cancel_waiting([cancelled], "asked")
    storage.requeue_many([expired, cancelled], 60.0)
    assert (row(expired).expires_at, row(cancelled).expires_at) == (None, soon)
    assert {each.id for each in claim(storage, worker)} == {expired, cancelled}


@pytest.mark.postgres_only("SQLite has no row locks")
def test_a_sweep_leaves_locked_rows_to_the_next(storage, other):
    (job,) = insert(storage, **BY_TIME)
    with other.connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM jobqueue_job FOR SHARE")
        assert storage.expire(10, TOO_LATE) == []
        cursor.execute("COMMIT")
    assert [each.id for each in storage.expire(10, TOO_LATE)] == [job]
