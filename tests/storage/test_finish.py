"""The finish, the hold and the verdict: the guard lets the owner in and nobody else."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connection, transaction

from jobqueue.exceptions import LeaseLost
from jobqueue.ids import new_identity
from jobqueue.models import Job
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import open_connection, transaction_on
from jobqueue.storage.records import Claim, Success
from jobqueue.storage.statements import statement
from tests.app.models import Effect
from tests.storage.making import (
    FAILURE,
    attempts,
    claim,
    claimed,
    ending,
    everything,
    insert,
    register,
    row,
    run_sql,
    states,
)


def stale_fence(storage: Storage, held: Claim) -> Claim:
    return held._replace(fence=held.fence - 1)


def other_worker(storage: Storage, held: Claim) -> Claim:
    return held._replace(worker=new_identity())


def released(storage: Storage, held: Claim) -> Claim:
    storage.end_many([ending(held, "ready")])
    return held


def claimed_again(storage: Storage, held: Claim) -> Claim:
    storage.end_many([ending(held, "ready", outcome="lost", suspicion=1)])
    assert len(claim(storage, register(storage))) == 1
    return held


def claimed_again_by_the_same_worker(storage: Storage, held: Claim) -> Claim:
    storage.end_many([ending(held, "ready")])
    assert len(claim(storage, held.worker)) == 1
    return held


def force_cancelled(storage: Storage, held: Claim) -> Claim:
    assert storage.force_cancel(held.id, held.fence, held.worker, "operator")
    return held


def finished(storage: Storage, held: Claim) -> Claim:
    assert storage.finish_many(held.worker, [success(held)]) == []
    return held


def gone(storage: Storage, held: Claim) -> Claim:
    Job.objects.filter(pk=held.id).delete()
    return held


NOT_THE_OWNER = [
    stale_fence,
    other_worker,
    released,
    claimed_again,
    claimed_again_by_the_same_worker,
    force_cancelled,
    finished,
    gone,
]
Intrusion = Callable[[Storage, Claim], Claim]


def forget_the_finish(held: Claim) -> None:
    """Set the job's row back to running, as if it had not kept what the attempt row says."""
    Job.objects.filter(pk=held.id).update(
        state="running",
        attempts=0,
        worker=held.worker,
        claimed_at=held.claimed_at,
        deadline=held.claimed_at,
        finished_at=None,
        result=None,
    )


def success(of: Claim, result: str = "null", **changes: float) -> Success:
    return Success(of.id, of.fence, result, **{"started_ago": 2.0, "ended_ago": 0.5, **changes})


@pytest.fixture
def held(storage: Storage) -> Claim:
    return claimed(storage)


@pytest.fixture
def direct() -> Iterator[Storage]:
    """A storage on a session that is taken for a direct one: its statements are prepared."""
    opened = open_connection("default", direct=True)
    yield storage_for(opened)
    opened.close()


# --- one job, in its own transaction --------------------------------------------------------------


def test_a_finish_succeeds_with_the_jobs_own_writes(held: Claim) -> None:
    with transaction.atomic():
        Effect.objects.create(job_id=str(held.id))
        storage_for(connection).finish_one(held, '{"paid": true}', 2.0)
    stored = row(held.id)
    assert (stored.state, stored.result, stored.attempts) == ("succeeded", {"paid": True}, 1)
    assert (stored.worker, stored.claimed_at, stored.deadline) == (None, None, None)
    assert stored.finished_at is not None
    assert Effect.objects.count() == 1


def test_a_finish_leaves_one_attempt_row(held: Claim) -> None:
    with transaction.atomic():
        storage_for(connection).finish_one(held, "null", 2.0)
    (attempt,) = attempts(held.id)
    assert (attempt.number, attempt.fence, attempt.worker) == (1, held.fence, held.worker)
    assert (attempt.task, attempt.queue) == (held.task, held.queue)
    assert (attempt.outcome, attempt.charged) == ("succeeded", False)
    assert attempt.finished_at == row(held.id).finished_at
    assert attempt.finished_at - attempt.started_at == timedelta(seconds=2)


def test_a_rolled_back_finish_never_was(held: Claim) -> None:
    before = everything()
    with transaction.atomic():
        storage_for(connection).finish_one(held, "null", 2.0)
        transaction.set_rollback(True)
    assert everything() == before


def test_a_success_clears_what_earlier_attempts_left(storage: Storage) -> None:
    worker = register(storage)
    first = claimed(storage, worker)
    storage.end_many(
        [
            ending(
                first,
                "retrying",
                outcome="failed",
                charged=True,
                delay=0.0,
                error=FAILURE,
                suspicion=1,
                reason="worker lost",
            )
        ]
    )
    storage.promote(10)
    (second,) = claim(storage, worker)
    with transaction.atomic():
        storage_for(connection).finish_one(second, "null", 1.0)
    stored = row(first.id)
    assert (stored.error_class, stored.error_message, stored.error_fingerprint) == ("", "", "")
    assert (stored.suspicions, stored.alone, stored.reason) == (0, False, "")
    assert (stored.attempts, stored.failures) == (2, 1)
    assert [a.number for a in attempts(first.id)] == [1, 2]
    assert attempts(first.id)[0].error_message == FAILURE.message


@pytest.mark.parametrize("intrude", NOT_THE_OWNER)
def test_a_zombie_cannot_finish_nor_keep_its_effects(
    storage: Storage, held: Claim, intrude: Intrusion
) -> None:
    zombie = intrude(storage, held)
    before = everything()

    def run() -> None:
        with transaction.atomic():
            Effect.objects.create(job_id=str(held.id))
            storage_for(connection).finish_one(zombie, "null", 1.0)

    with pytest.raises(LeaseLost):
        run()
    assert everything() == before
    assert Effect.objects.count() == 0


@pytest.mark.parametrize("intrude", NOT_THE_OWNER)
def test_a_zombie_cannot_hold_a_job(storage: Storage, held: Claim, intrude: Intrusion) -> None:
    zombie = intrude(storage, held)
    with pytest.raises(LeaseLost), transaction.atomic():
        storage_for(connection).hold(zombie, 5.0)


def test_a_second_attempt_row_of_one_claim_means_lease_lost(held: Claim) -> None:
    with transaction.atomic():
        storage_for(connection).finish_one(held, "null", 1.0)
    forget_the_finish(held)
    with pytest.raises(LeaseLost), transaction.atomic():
        storage_for(connection).finish_one(held, "null", 1.0)
    assert len(attempts(held.id)) == 1


@pytest.mark.postgres_only("SQLite has no pipeline: nothing is sent behind a statement")
def test_a_commit_queued_behind_a_failing_guard_only_rolls_back(
    storage: Storage, held: Claim
) -> None:
    zombie = stale_fence(storage, held)
    connection.ensure_connection()
    raw = connection.connection
    finish = statement("postgresql", "finish_one", limit_idle="")
    parameters = {
        "id": zombie.id, "fence": zombie.fence, "worker": zombie.worker, "result": "null",
        "started_ago": 1.0, "idle_timeout": "5s",
    }  # fmt: skip
    effect = "INSERT INTO app_effect (job_id, label, created) VALUES (%s, '', now())"

    def send_all_at_once() -> None:
        with raw.pipeline():
            raw.execute("BEGIN")
            raw.execute(effect, ["zombie"])
            raw.execute(finish, parameters)
            raw.execute("COMMIT")

    with pytest.raises(Exception, match="jobqueue_lease_lost"):
        send_all_at_once()
    connection.close()
    assert Effect.objects.count() == 0
    assert row(held.id).state == "running"


@pytest.mark.postgres_only("SQLite has no sessions that the server could end")
def test_a_process_frozen_before_its_commit_will_lose_its_session(held: Claim) -> None:
    show = "SHOW idle_in_transaction_session_timeout"
    with transaction.atomic():
        storage_for(connection).finish_one(held, "null", 1.0)
        assert run_sql(connection, show) == [("5s",)]
    assert run_sql(connection, show) == [("0",)]


@pytest.mark.postgres_only("SQLite has no sessions that a pooler could stand before")
@pytest.mark.parametrize("intrude", NOT_THE_OWNER)
def test_on_a_direct_session_the_prepared_guard_is_as_strict(
    storage: Storage, direct: Storage, held: Claim, intrude: Intrusion
) -> None:
    zombie = intrude(storage, held)
    before = everything()
    with pytest.raises(LeaseLost):
        direct.finish_one(zombie, "null", 1.0)
    with pytest.raises(LeaseLost):
        direct.hold(zombie, 5.0)
    assert everything() == before


@pytest.mark.postgres_only("SQLite has no sessions that a pooler could stand before")
def test_on_a_direct_session_the_owner_holds_and_finishes(
    storage: Storage, direct: Storage
) -> None:
    worker = register(storage)
    for n in range(8):  # past the point where PostgreSQL may choose a generic plan
        held = claimed(storage, worker)
        with transaction_on(direct.connection):
            direct.hold(held, 5.0)
            direct.finish_one(held, json.dumps({"n": n}), 2.0)
        assert (row(held.id).state, row(held.id).result) == ("succeeded", {"n": n})


# --- hold -----------------------------------------------------------------------------------------


def test_the_owner_may_hold_and_then_finish(held: Claim) -> None:
    mine = storage_for(connection)
    with transaction.atomic():
        mine.hold(held, 5.0)
        mine.hold(held, 5.0)
        mine.finish_one(held, "null", 1.0)
    assert row(held.id).state == "succeeded"


def test_a_hold_changes_nothing(held: Claim) -> None:
    before = everything()
    with transaction.atomic():
        storage_for(connection).hold(held, 5.0)
    assert everything() == before


@pytest.mark.postgres_only("SQLite has no sessions that the server could end")
def test_a_hold_bounds_how_long_its_transaction_may_sit_idle(held: Claim) -> None:
    with transaction.atomic():
        storage_for(connection).hold(held, 12.5)
        (found,) = run_sql(connection, "SHOW idle_in_transaction_session_timeout")
    assert found == ("12500ms",)


# --- a batch --------------------------------------------------------------------------------------


def test_a_batch_finishes_every_job_of_ours(storage: Storage) -> None:
    worker = register(storage)
    insert(storage, 20)
    claims = claim(storage, worker, 20)
    successes = [success(c, json.dumps(n)) for n, c in enumerate(claims)]
    assert storage.finish_many(worker, successes) == []
    assert [row(c.id).result for c in claims] == list(range(20))
    assert {a.outcome for c in claims for a in attempts(c.id)} == {"succeeded"}


def test_a_batch_keeps_when_each_run_started_and_ended(storage: Storage, held: Claim) -> None:
    storage.finish_many(held.worker, [success(held, started_ago=3.0, ended_ago=1.0)])
    (attempt,) = attempts(held.id)
    assert attempt.finished_at - attempt.started_at == timedelta(seconds=2)
    assert attempt.finished_at == row(held.id).finished_at


def test_an_empty_batch_is_nothing(storage: Storage) -> None:
    assert storage.finish_many(register(storage), []) == []


@pytest.mark.parametrize("intrude", [i for i in NOT_THE_OWNER if i is not other_worker])
def test_a_batch_reports_what_is_not_ours_and_finishes_the_rest(
    storage: Storage, intrude: Intrusion
) -> None:
    worker = register(storage)
    lost, ours = claimed(storage, worker), claimed(storage, worker)
    zombie = intrude(storage, lost)
    before = attempts(lost.id), states(*Job.objects.filter(pk=lost.id).values_list("id", flat=True))
    reported = storage.finish_many(worker, [success(zombie), success(ours)])
    assert reported == [(zombie.id, zombie.fence)]
    assert row(ours.id).state == "succeeded"
    assert before == (
        attempts(lost.id), states(*Job.objects.filter(pk=lost.id).values_list("id", flat=True))
    )  # fmt: skip


def test_a_batch_of_another_worker_changes_nothing(storage: Storage, held: Claim) -> None:
    before = everything()
    assert storage.finish_many(new_identity(), [success(held)]) == [(held.id, held.fence)]
    assert everything() == before


def test_a_batch_that_fails_leaves_nothing_behind(storage: Storage) -> None:
    """The engine splits it: half of a batch must never be there."""
    worker = register(storage)
    good, bad = claimed(storage, worker), claimed(storage, worker)
    with transaction.atomic():
        storage_for(connection).finish_one(bad, "null", 1.0)
    forget_the_finish(bad)
    before = everything()
    with pytest.raises(Exception, match="jobqueue_attempt"):
        storage.finish_many(worker, [success(good), success(bad)])
    assert everything() == before
    assert storage.finish_many(worker, [success(good)]) == []


# --- the verdict on an unknown COMMIT -------------------------------------------------------------


def test_a_committed_finish_is_found(storage: Storage, held: Claim) -> None:
    finished(storage, held)
    assert (storage.verdict(held).outcome, storage.verdict(held).still_ours) == ("succeeded", False)


def test_a_finish_that_never_came_leaves_the_job_ours(storage: Storage, held: Claim) -> None:
    assert (storage.verdict(held).outcome, storage.verdict(held).still_ours) == (None, True)


def test_a_reaped_job_says_lost(storage: Storage, held: Claim) -> None:
    claimed_again(storage, held)
    assert (storage.verdict(held).outcome, storage.verdict(held).still_ours) == ("lost", False)


def test_a_released_or_pruned_job_says_nothing(storage: Storage, held: Claim) -> None:
    released(storage, held)
    assert (storage.verdict(held).outcome, storage.verdict(held).still_ours) == (None, False)
    gone(storage, held)
    assert (storage.verdict(held).outcome, storage.verdict(held).still_ours) == (None, False)


def test_another_workers_success_at_the_same_fence_is_not_ours(
    storage: Storage, held: Claim
) -> None:
    finished(storage, held)
    assert storage.verdict(other_worker(storage, held)).outcome is None


def test_a_verdict_waits_for_a_session_that_is_still_committing(
    storage: Storage, held: Claim
) -> None:
    found = []
    looker = threading.Thread(target=lambda: found.append(storage.verdict(held)))
    with transaction.atomic():
        storage_for(connection).finish_one(held, "null", 1.0)
        looker.start()
    looker.join()
    assert [v.outcome for v in found] == ["succeeded"]


def test_verdicts_say_the_same_of_many(storage: Storage) -> None:
    worker = register(storage)
    finished, running, reaped, removed = (claimed(storage, worker) for _ in range(4))
    storage.finish_many(worker, [success(finished)])
    storage.end_many([ending(reaped, "ready", outcome="lost")])
    gone(storage, removed)
    claims = [finished, running, reaped, removed, other_worker(storage, running)]
    claims[-1] = claims[-1]._replace(fence=running.fence + 1)
    found = storage.verdicts(claims)
    expected = [("succeeded", False), (None, True), ("lost", False), (None, False), (None, False)]
    assert [found[each.id, each.fence] for each in claims] == expected


@pytest.mark.postgres_only("SQLite has no row locks")
def test_verdicts_wait_for_nobody(storage: Storage, held: Claim) -> None:
    run_sql(storage.connection, "SET lock_timeout = '3s'")
    with transaction.atomic():
        run_sql(connection, "SELECT 1 FROM jobqueue_job WHERE id = %s FOR UPDATE", [held.id])
        assert storage.verdicts([held])[held.id, held.fence] == (None, True)
