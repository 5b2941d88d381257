"""Sweeps: promote, park and admit, prune; in any number, each row once."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from jobqueue.models import Attempt, Job, JobTag, Step
from jobqueue.storage import Storage, postgres, sqlite
from tests.storage.making import (
    TASK,
    attempts,
    buried,
    claim,
    claimed,
    ending,
    insert,
    prune,
    register,
    row,
    run_sql,
    states,
)
from tests.storage.test_finish import success

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_due_jobs_become_ready_and_keep_their_rank(storage: Storage) -> None:
    soon, later = (insert(storage, run_at=NOON + n * HOUR, queue=str(n))[0] for n in (1, 2))
    rank = row(soon).rank
    assert storage.promote(10, now=NOON) == []
    assert storage.promote(10, now=NOON + HOUR) == ["1"]
    assert states(soon, later) == ["ready", "scheduled"]
    assert (row(soon).rank, row(soon).version) == (rank, 2)


def test_a_retry_is_promoted_when_its_delay_is_over(storage: Storage) -> None:
    held = claimed(storage)
    storage.end_many([ending(held, "retrying", outcome="failed", charged=True, delay=5.0)])
    assert storage.promote(10) == []
    assert storage.promote(10, now=row(held.id).run_at) == ["default"]
    assert row(held.id).state == "ready"


def test_promotion_takes_the_longest_due_first_and_no_more_than_its_limit(
    storage: Storage,
) -> None:
    ids = [insert(storage, run_at=NOON + n * HOUR)[0] for n in (3, 1, 2)]
    assert len(storage.promote(2, now=NOON + 4 * HOUR)) == 2
    assert states(*ids) == ["scheduled", "ready", "ready"]


def test_without_a_given_time_the_databases_clock_counts(storage: Storage) -> None:
    now, later = insert(storage, delay=0.01)[0], insert(storage, delay=3_600.0)[0]
    while not storage.promote(10):
        pass
    assert states(now, later) == ["ready", "scheduled"]


@pytest.mark.postgres_only("SQLite has no row locks: another writer's transaction is waited for")
def test_promotion_skips_what_somebody_has_locked(storage: Storage) -> None:
    locked, free = insert(storage, 2, run_at=NOON)
    with transaction.atomic():
        run_sql(connection, "SELECT 1 FROM jobqueue_job WHERE id = %s FOR UPDATE", [locked])
        assert len(storage.promote(10, now=NOON)) == 1
    assert states(locked, free) == ["scheduled", "ready"]


def test_unknown_tasks_are_parked_with_the_reason_and_nothing_fails(storage: Storage) -> None:
    unknown, known = insert(storage, task="app.gone")[0], insert(storage)[0]
    assert storage.park_unknown([TASK], 10) == ["app.gone"]
    assert (row(unknown).state, row(unknown).reason) == ("blocked", "unknown task")
    assert (row(unknown).attempts, attempts(unknown)) == (0, [])
    assert row(known).state == "ready"
    assert storage.park_unknown([TASK], 10) == []


def test_parking_keeps_to_its_limit_and_to_waiting_jobs(storage: Storage) -> None:
    claimed(storage)
    insert(storage, 3, task="app.gone", queue="a")
    insert(storage, 3, task="app.gone", queue="b")
    insert(storage, task="app.gone", delay=60.0)
    assert len(storage.park_unknown([], 4)) == 4
    assert len(storage.park_unknown([], 4)) == 2
    assert storage.park_unknown([], 4) == []


def test_only_rows_that_stand_in_the_way_are_parked(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "CLAIM_WINDOW", 2)
    monkeypatch.setattr(sqlite, "CLAIM_WINDOW", 2)
    insert(storage, 2, now=NOON)
    (behind,) = insert(storage, now=NOON + HOUR, task="app.gone")
    assert storage.park_unknown([TASK], 10) == []
    claim(storage, register(storage), 1)
    assert storage.park_unknown([TASK], 10) == ["app.gone"]
    assert row(behind).state == "blocked"


def test_a_parked_job_is_admitted_when_its_task_is_known(storage: Storage) -> None:
    (job_id,) = insert(storage, task="app.gone", queue="mail")
    rank = row(job_id).rank
    storage.park_unknown([TASK], 10)
    assert storage.admit_known([TASK], 10) == []
    assert storage.admit_known([TASK, "app.gone"], 10) == ["mail"]
    assert (row(job_id).state, row(job_id).reason, row(job_id).rank) == ("ready", "", rank)


def test_admission_leaves_other_reasons_and_keeps_to_its_limit(storage: Storage) -> None:
    parked = insert(storage, 3, task="app.gone")
    storage.park_unknown([], 10)
    Job.objects.filter(pk=parked[0]).update(reason="parent failed")
    assert len(storage.admit_known(["app.gone"], 1)) == 1
    assert len(storage.admit_known(["app.gone"], 10)) == 1
    assert row(parked[0]).state == "blocked"


def test_pruning_takes_a_job_with_all_that_belongs_to_it(storage: Storage) -> None:
    worker = register(storage)
    held = claimed(storage, worker, tags=("order:1",))
    storage.record_step(held, "charge", "1")
    storage.finish_many(worker, [success(held)])
    kept = claimed(storage, worker, tags=("order:2",))
    storage.record_step(kept, "charge", "1")
    storage.end_many([ending(kept, "ready", outcome="failed", charged=True)])
    assert prune(storage, "succeeded", 3_600.0, 10) == 0
    assert prune(storage, "succeeded", -1.0, 10) == 1
    for model in (Attempt, Step, JobTag):
        assert set(model.objects.values_list("job_id", flat=True)) == {kept.id}
    assert list(Job.objects.values_list("id", flat=True)) == [kept.id]


def test_pruning_takes_only_the_state_it_is_told_and_its_limit(storage: Storage) -> None:
    dead = [buried(storage) for _ in range(3)]
    cancelled = insert(storage, 2)
    storage.cancel_waiting(cancelled, "")
    assert prune(storage, "dead", -1.0, 2) == 2
    assert prune(storage, "dead", -1.0, 2) == 1
    assert Job.objects.filter(pk__in=dead).count() == 0
    assert Job.objects.filter(pk__in=cancelled).count() == 2


def test_pruning_starts_with_the_oldest(storage: Storage) -> None:
    ids = sorted(buried(storage) for _ in range(3))
    prune(storage, "dead", -1.0, 1)
    assert sorted(Job.objects.values_list("id", flat=True)) == ids[1:]


def test_parked_tasks_are_named_once_each_however_many_jobs_wait(storage: Storage) -> None:
    for name in ("b.task", "a.task", "c.task"):
        insert(storage, 3, task=name)
    insert(storage, task="known.task")
    storage.park_unknown(["known.task"], 100)
    assert storage.parked_tasks(10) == ["a.task", "b.task", "c.task"]
    assert storage.parked_tasks(2) == ["a.task", "b.task"]
    storage.admit_known(["a.task", "b.task", "c.task"], 100)
    assert storage.parked_tasks(10) == []
