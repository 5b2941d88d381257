"""What operators do: compare and set, so that nobody's run is overwritten."""

import pytest
from django.db import connection, transaction

from jobqueue.exceptions import LeaseLost, RowLocked
from jobqueue.ids import new_identity, new_job_id
from jobqueue.storage import Storage, storage_for
from tests.storage.making import (
    AGING_SECONDS,
    FAILURE,
    attempts,
    buried,
    claim,
    claimed,
    ending,
    insert,
    register,
    row,
    run_sql,
    states,
)
from tests.storage.test_finish import success


def in_every_state(storage: Storage) -> dict[str, object]:
    """Make one job in each state; return ids by state."""
    worker = register(storage)
    found: dict[str, object] = {"dead": buried(storage, worker)}
    for state, changes in (
        ("retrying", {"outcome": "failed", "charged": True, "delay": 60.0, "error": FAILURE}),
        ("cancelled", {"outcome": "cancelled"}),
    ):
        held = claimed(storage, worker)
        storage.end_many([ending(held, state, **changes)])
        found[state] = held.id
    held = claimed(storage, worker)
    storage.finish_many(worker, [success(held)])
    found["succeeded"] = held.id
    (found["blocked"],) = insert(storage, task="app.gone")
    storage.park_unknown([], 10)
    found["running"] = claimed(storage, worker).id
    (found["ready"],) = insert(storage)
    (found["scheduled"],) = insert(storage, delay=60.0)
    return found


def test_every_state_is_reached_through_storage(storage: Storage) -> None:
    found = in_every_state(storage)
    assert states(*found.values()) == list(found)


def test_only_ended_jobs_are_requeued(storage: Storage) -> None:
    found = in_every_state(storage)
    requeued = storage.requeue_many([*found.values(), new_job_id()], AGING_SECONDS)
    assert sorted(requeued) == sorted([found["dead"], found["cancelled"]])
    assert states(found["dead"], found["cancelled"]) == ["ready", "ready"]
    assert row(found["running"]).state == "running"


def test_a_requeued_job_has_a_new_budget_and_keeps_its_history(storage: Storage) -> None:
    job_id = buried(storage)
    before = row(job_id)
    storage.requeue_many([job_id], AGING_SECONDS)
    stored = row(job_id)
    assert (stored.failures, stored.suspicions, stored.alone) == (0, 0, False)
    assert (stored.finished_at, stored.reason, stored.attempts) == (None, "", 1)
    assert stored.run_at > before.run_at
    assert stored.rank == round(stored.run_at.timestamp() * 1_000_000)
    assert [a.number for a in attempts(job_id)] == [1]
    (again,) = claim(storage, register(storage))
    storage.end_many([ending(again, "dead", outcome="failed", charged=True)])
    assert [(a.number, a.fence) for a in attempts(job_id)] == [(1, 1), (2, 2)]


def test_a_requeued_job_keeps_its_priority(storage: Storage) -> None:
    held = claimed(storage, priority=3)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True)])
    storage.requeue_many([held.id], 10.0)
    stored = row(held.id)
    assert stored.rank == round(stored.run_at.timestamp() * 1_000_000) - 30_000_000


def test_only_waiting_jobs_are_cancelled_without_their_worker(storage: Storage) -> None:
    found = in_every_state(storage)
    cancelled = storage.cancel_waiting([*found.values()], "not needed")
    waiting = [found[s] for s in ("scheduled", "ready", "blocked", "retrying")]
    assert sorted(cancelled) == sorted(waiting)
    assert states(*waiting) == ["cancelled"] * 4
    assert {row(each).reason for each in waiting} == {"not needed"}
    assert all(row(each).finished_at for each in waiting)
    assert row(found["running"]).state == "running"


def test_only_dead_letters_are_discarded(storage: Storage) -> None:
    found = in_every_state(storage)
    before = row(found["dead"]).finished_at
    assert storage.discard_dead([*found.values()], "given up") == [found["dead"]]
    stored = row(found["dead"])
    assert (stored.state, stored.reason) == ("cancelled", "given up")
    assert stored.finished_at >= before
    assert row(found["retrying"]).state == "retrying"


def test_nobody_to_act_on_is_nothing(storage: Storage) -> None:
    assert storage.requeue_many([], AGING_SECONDS) == []
    assert storage.cancel_waiting([], "") == []
    assert storage.discard_dead([], "") == []


def test_a_forced_cancel_ends_the_run_and_refuses_its_worker(storage: Storage) -> None:
    held = claimed(storage)
    assert storage.force_cancel(held.id, held.fence, held.worker, "operator") is True
    stored = row(held.id)
    assert (stored.state, stored.fence, stored.reason) == ("cancelled", held.fence + 1, "operator")
    assert (stored.worker, stored.attempts) == (None, 1)
    (attempt,) = attempts(held.id)
    assert (attempt.outcome, attempt.charged, attempt.fence) == ("cancelled", False, held.fence)
    assert (attempt.worker, attempt.started_at) == (held.worker, held.claimed_at)
    with pytest.raises(LeaseLost):
        storage.finish_one(held, "null", 1.0)


def test_a_forced_cancel_means_the_run_that_was_seen(storage: Storage) -> None:
    held = claimed(storage)
    assert storage.force_cancel(held.id, held.fence + 1, held.worker, "operator") is False
    # After a failover another worker may have been handed the same fence.
    assert storage.force_cancel(held.id, held.fence, new_identity(), "operator") is False
    assert storage.force_cancel(new_job_id(), 1, held.worker, "operator") is False
    storage.end_many([ending(held, "ready")])
    assert storage.force_cancel(held.id, held.fence, held.worker, "operator") is False
    assert (row(held.id).state, attempts(held.id)) == ("ready", [])


def test_after_a_forced_cancel_and_requeue_the_fence_still_grows(storage: Storage) -> None:
    held = claimed(storage)
    storage.force_cancel(held.id, held.fence, held.worker, "operator")
    storage.requeue_many([held.id], AGING_SECONDS)
    (again,) = claim(storage, register(storage))
    assert again.fence == held.fence + 2
    storage.finish_one(again, "null", 1.0)
    assert [(a.number, a.fence) for a in attempts(held.id)] == [(1, 1), (2, 3)]


def test_an_operator_is_told_of_a_lock_and_never_waits(storage: Storage) -> None:
    held = claimed(storage)
    if storage.vendor == "sqlite":
        run_sql(storage.connection, "PRAGMA busy_timeout = 10")
    with transaction.atomic():
        storage_for(connection).hold(held, 5.0)
        with pytest.raises(RowLocked):
            storage.force_cancel(held.id, held.fence, held.worker, "operator")
    assert storage.force_cancel(held.id, held.fence, held.worker, "operator") is True


def test_a_forced_cancel_inside_a_callers_transaction_falls_with_it(storage: Storage) -> None:
    held = claimed(storage)
    with transaction.atomic():
        assert (
            storage_for(connection).force_cancel(held.id, held.fence, held.worker, "operator")
            is True
        )
        transaction.set_rollback(True)
    assert row(held.id).state == "running"


def test_an_operation_waits_for_no_lock_for_long() -> None:
    with transaction.atomic():
        storage_for(connection).begin_operation(2.5)
        if connection.vendor == "postgresql":
            assert run_sql(connection, "SHOW lock_timeout") == [("2500ms",)]
            assert run_sql(connection, "SHOW transaction_isolation") == [("read committed",)]
    if connection.vendor == "postgresql":
        assert run_sql(connection, "SHOW lock_timeout") == [("0",)]


def test_the_clock_is_the_databases(storage: Storage) -> None:
    before = storage.clock()
    (inserted,) = insert(storage)
    assert before <= row(inserted).enqueued_at <= storage.clock()


@pytest.mark.postgres_only("SQLite has no row locks: another writer's transaction is waited for")
def test_locked_rows_are_left_to_be_tried_again(storage: Storage) -> None:
    locked, free = insert(storage, 2)
    with transaction.atomic():
        run_sql(connection, "SELECT 1 FROM jobqueue_job WHERE id = %s FOR UPDATE", [locked])
        assert storage.cancel_waiting([locked, free], "") == [free]
    assert storage.cancel_waiting([locked, free], "") == [locked]
    with transaction.atomic():
        run_sql(connection, "SELECT 1 FROM jobqueue_job WHERE id = %s FOR UPDATE", [locked])
        assert storage.requeue_many([locked, free], AGING_SECONDS) == [free]
