"""Claim: the most urgent first, never twice, and never what this worker must not take."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import transaction

from jobqueue.ids import new_identity
from jobqueue.models import Queue
from jobqueue.storage import Storage, postgres, sqlite, storage_for
from jobqueue.storage.records import FRONT, Place
from tests.storage.making import (
    QUEUE,
    TASK,
    claim,
    claimed,
    ending,
    insert,
    register,
    row,
    run_sql,
    states,
)

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def worker(storage: Storage) -> UUID:
    return register(storage)


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> int:
    """A claim window of five rows."""
    monkeypatch.setattr(postgres, "CLAIM_WINDOW", 5)
    monkeypatch.setattr(sqlite, "CLAIM_WINDOW", 5)
    return 5


def suspect(storage: Storage, worker: UUID, **changes: object) -> UUID:
    """Make a ready job that must run alone."""
    held = claimed(storage, worker, **changes)
    storage.end_many([ending(held, "ready", outcome="lost", suspicion=2, alone=True)])
    return held.id


def test_a_claim_makes_the_job_running_under_this_worker(storage: Storage, worker: UUID) -> None:
    (job_id,) = insert(storage, now=NOON, timeout=2.5)
    (found,) = claim(storage, worker, now=NOON)
    stored = row(job_id)
    assert (stored.state, stored.worker, stored.fence) == ("running", worker, 1)
    assert stored.claimed_at == found.claimed_at == NOON
    assert stored.deadline == NOON + timedelta(seconds=2.5)
    assert stored.version == 2


def test_a_claim_carries_what_the_worker_needs(storage: Storage, worker: UUID) -> None:
    (job_id,) = insert(
        storage, arguments='{"args":[1e22],"kwargs":{}}', priority=3, max_attempts=None
    )
    (found,) = claim(storage, worker)
    assert (found.id, found.fence, found.worker) == (job_id, 1, worker)
    assert (found.task, found.queue, found.backend) == (TASK, QUEUE, "default")
    assert found.arguments == '{"args":[1e22],"kwargs":{}}'
    assert (found.max_attempts, found.timeout) == (None, 60.0)
    assert (found.failures, found.suspicions) == (0, 0)
    assert (found.alone, found.rank) == (False, row(job_id).rank)
    assert isinstance(found.timeout, float)


def test_without_a_given_time_the_databases_clock_counts(storage: Storage, worker: UUID) -> None:
    (inserted,) = insert(storage)
    (found,) = claim(storage, worker)
    assert row(inserted).enqueued_at <= found.claimed_at
    assert row(inserted).deadline == found.claimed_at + timedelta(seconds=found.timeout)


def test_every_claim_raises_the_fence(storage: Storage, worker: UUID) -> None:
    insert(storage)
    fences = []
    for _ in range(3):
        (held,) = claim(storage, worker)
        fences.append(held.fence)
        storage.end_many([ending(held, "ready")])
    assert fences == [1, 2, 3]


def test_the_longest_waiting_come_first(storage: Storage, worker: UUID) -> None:
    times = [NOON + timedelta(seconds=n) for n in (3, 1, 2)]
    third, first, second = [insert(storage, now=at)[0] for at in times]
    assert [c.id for c in claim(storage, worker, 2)] == [first, second]
    assert [c.id for c in claim(storage, worker, 2)] == [third]


def test_the_best_of_all_queues_come_first(storage: Storage, worker: UUID) -> None:
    placed = [
        insert(storage, now=NOON + timedelta(seconds=n), queue=queue)[0]
        for n, queue in enumerate(["a", "b", "a", "c", "b"])
    ]
    found = claim(storage, worker, 4, queues=["c", "b", "a"])
    assert [c.id for c in found] == placed[:4]


def test_priority_goes_ahead_by_its_worth_and_no_further(storage: Storage, worker: UUID) -> None:
    (old,) = insert(storage, now=NOON - timedelta(seconds=90))
    (urgent,) = insert(storage, now=NOON, priority=1)  # worth 60 s
    (most_urgent,) = insert(storage, now=NOON, priority=2)
    assert [c.id for c in claim(storage, worker)] == [most_urgent, old, urgent]


def test_a_claim_takes_no_more_than_its_limit(storage: Storage, worker: UUID) -> None:
    insert(storage, 5)
    assert len(claim(storage, worker, 3)) == 3
    assert len(claim(storage, worker, 3)) == 2
    assert claim(storage, worker, 3) == []


def test_only_ready_jobs_are_claimed(storage: Storage, worker: UUID) -> None:
    insert(storage, delay=3_600.0)
    claimed(storage, worker)
    assert claim(storage, worker) == []


def test_other_queues_and_unknown_tasks_are_left(storage: Storage, worker: UUID) -> None:
    insert(storage, queue="elsewhere")
    insert(storage, task="app.unknown")
    assert claim(storage, worker) == []
    assert claim(storage, worker, queues=[], tasks=[TASK]) == []
    assert claim(storage, worker, tasks=[]) == []


def test_a_paused_queue_is_left_until_it_is_resumed(storage: Storage, worker: UUID) -> None:
    (job_id,) = insert(storage)
    Queue.objects.create(name=QUEUE, paused=True)
    assert claim(storage, worker) == []
    Queue.objects.update(paused=False)
    assert [c.id for c in claim(storage, worker)] == [job_id]


def test_a_dead_or_unregistered_worker_claims_nothing(storage: Storage, worker: UUID) -> None:
    (job_id,) = insert(storage)
    storage.mark_dead(worker, "test")
    assert claim(storage, worker) == []
    assert claim(storage, new_identity()) == []
    assert row(job_id).state == "ready"


def test_a_job_that_must_run_alone_is_left_to_the_lonely(storage: Storage, worker: UUID) -> None:
    job_id = suspect(storage, worker)
    assert claim(storage, worker) == []
    assert storage.alone_waiting([QUEUE], [TASK]) == 1
    (found,) = storage.claim_alone(worker, [QUEUE], [TASK], now=NOON)
    assert (found.id, found.alone, found.suspicions) == (job_id, True, 2)
    assert found.claimed_at == row(job_id).claimed_at == NOON
    assert storage.alone_waiting([QUEUE], [TASK]) == 0


def test_only_one_that_must_run_alone_is_claimed_at_a_time(storage: Storage, worker: UUID) -> None:
    first, second = suspect(storage, worker), suspect(storage, worker)
    insert(storage)
    assert [c.id for c in storage.claim_alone(worker, [QUEUE], [TASK])] == [first]
    assert [c.id for c in storage.claim_alone(worker, [QUEUE], [TASK])] == [second]
    assert storage.claim_alone(worker, [QUEUE], [TASK]) == []


def test_lonely_jobs_of_paused_or_other_queues_wait(storage: Storage, worker: UUID) -> None:
    suspect(storage, worker)
    assert storage.claim_alone(worker, ["elsewhere"], [TASK]) == []
    assert storage.claim_alone(worker, [QUEUE], ["app.unknown"]) == []
    assert storage.alone_waiting(["elsewhere"], [TASK]) == 0
    assert storage.alone_waiting([QUEUE], ["app.unknown"]) == 0
    Queue.objects.create(name=QUEUE, paused=True)
    assert storage.claim_alone(worker, [QUEUE], [TASK]) == []
    assert storage.alone_waiting([QUEUE], [TASK]) == 0


def test_a_claim_looks_no_further_than_its_window(
    storage: Storage, worker: UUID, window: int
) -> None:
    in_the_way = insert(storage, window, now=NOON, task="app.unknown")
    (behind,) = insert(storage, now=NOON + timedelta(seconds=1))
    assert claim(storage, worker) == []
    ((is_usable, last, _),) = storage.read_windows([QUEUE], [FRONT], [TASK])
    assert last is not None
    assert (is_usable, last) == (False, Place(row(in_the_way[-1]).rank, max(in_the_way)))
    assert [c.id for c in claim(storage, worker, behind=[last])] == [behind]


def test_a_place_tells_apart_jobs_of_one_rank(storage: Storage, worker: UUID, window: int) -> None:
    ids = sorted(insert(storage, window + 2, now=NOON))
    ((_, last, _),) = storage.read_windows([QUEUE], [FRONT], [TASK])
    assert last == Place(row(ids[0]).rank, ids[window - 1])
    found = claim(storage, worker, limit=window + 2, behind=[last])
    assert sorted(c.id for c in found) == ids[window:]


def test_a_window_that_is_not_full_has_no_last_place(storage: Storage, window: int) -> None:
    insert(storage, window - 1)
    insert(storage, window, queue="full")
    windows = storage.read_windows(["empty", "full", QUEUE], [FRONT] * 3, [TASK])
    assert [w.is_usable for w in windows] == [False, True, True]
    assert [w.last is None for w in windows] == [True, False, True]
    last = windows[1].last or FRONT
    assert storage.read_windows(["full"], [last], [TASK]) == [(False, None, False)]
    assert storage.read_windows([], [], [TASK]) == []


def test_a_window_of_a_paused_queue_shows_nothing(storage: Storage, window: int) -> None:
    insert(storage, window)
    Queue.objects.create(name=QUEUE, paused=True)
    assert storage.read_windows([QUEUE], [FRONT], [TASK]) == [(False, None, False)]


def test_live_queues_are_those_with_a_ready_job(storage: Storage, worker: UUID) -> None:
    for queue in ("b", "a", "b", "c"):
        insert(storage, queue=queue)
    insert(storage, queue="later", delay=60.0)
    assert storage.live_queues() == ["a", "b", "c"]
    claim(storage, worker, queues=["b"])
    assert storage.live_queues() == ["a", "c"]
    claim(storage, worker, queues=["a", "c"])
    assert storage.live_queues() == []


def test_two_workers_never_hold_the_same_job(storage: Storage, other: Storage) -> None:
    insert(storage, 20)
    first = claim(storage, register(storage), 12)
    second = claim(other, register(other), 12)
    assert len({c.id for c in [*first, *second]}) == 20


def test_claims_at_the_same_time_share_the_jobs(open_storage: Callable[[], Storage]) -> None:
    storages = [open_storage() for _ in range(4)]
    ids = insert(storages[0], 60)
    workers = [register(storage) for storage in storages]
    found: list[UUID] = []
    start = threading.Barrier(len(storages))

    def drain(storage: Storage, worker: UUID) -> None:
        start.wait()
        empty = 0
        while empty < 3:  # a claim that lost every row to others is not the end
            claims = claim(storage, worker, 5)
            found.extend(c.id for c in claims)
            empty = 0 if claims else empty + 1

    threads = [
        threading.Thread(target=drain, args=pair) for pair in zip(storages, workers, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(ids)


@pytest.mark.postgres_only("SQLite has no row locks: another writer's transaction is waited for")
def test_a_locked_row_is_passed_over(storage: Storage, worker: UUID) -> None:
    locked, free = insert(storage, 2)
    with transaction.atomic():
        run_sql(
            transaction.get_connection(),
            "SELECT 1 FROM jobqueue_job WHERE id = %s FOR UPDATE",
            [locked],
        )
        assert [c.id for c in claim(storage, worker)] == [free]
    assert states(locked, free) == ["ready", "running"]


def test_a_claim_inside_a_callers_transaction_rolls_back_with_it(worker: UUID) -> None:
    callers = storage_for(transaction.get_connection())
    (job_id,) = insert(callers)
    with transaction.atomic():
        assert len(claim(callers, worker)) == 1
        transaction.set_rollback(True)
    assert row(job_id).state == "ready"


# --- queues in order ------------------------------------------------------------------------------


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside limited ones"])
def test_in_strict_order_nothing_is_taken_while_an_earlier_queue_has_a_job(
    storage: Storage, worker: UUID, beside: bool
) -> None:
    old = insert(storage, 2, now=NOON, queue="slow")
    (new,) = insert(storage, now=NOON + timedelta(hours=1), queue="urgent")

    def take(limit: int) -> list[UUID]:
        queues, tasks = ["urgent", "slow"], [TASK]
        if beside:
            claims, _ = storage.claim_beside_limited(worker, queues, tasks, limit, strict=True)
        else:
            claims = storage.claim_many(worker, queues, tasks, limit, strict=True)
        return [found.id for found in claims]

    assert take(2) == [new, min(old)]
    assert take(2) == [max(old)]


def test_by_rank_the_oldest_of_all_queues_is_taken(storage: Storage, worker: UUID) -> None:
    (old,) = insert(storage, now=NOON, queue="slow")
    insert(storage, now=NOON + timedelta(hours=1), queue="urgent")
    assert [c.id for c in claim(storage, worker, 1, queues=["urgent", "slow"])] == [old]
