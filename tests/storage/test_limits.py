"""Limits in storage: what is counted, claimed, parked and admitted; never more than fits."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction

from jobqueue.models import Job, Limit, LimitUse, Queue
from jobqueue.storage import Storage
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.records import FRONT, Claim, CodedLimit, Limited
from tests.storage.making import QUEUE, TASK, ending, insert, register, row, run_sql, states

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
KEY = "customer:42"


@pytest.fixture
def worker(storage: Storage) -> UUID:
    return register(storage)


def limit(key: str = "customer", running: int | None = None, **numbers: float) -> None:
    Limit.objects.update_or_create(key=key, defaults={"running": running, **numbers})


def limited(*ids: UUID, key: str | None = KEY, queue: str = QUEUE) -> list[Limited]:
    return [Limited(i, row(i).rank, queue, key, key is None) for i in ids]


def placed(storage: Storage, keys: list[str | None]) -> list[UUID]:
    """Insert a job of each key, a second apart, and return them in their order."""
    return [
        insert(storage, now=NOON + timedelta(seconds=n), limit_key=key)[0]
        for n, key in enumerate(keys)
    ]


def start(storage: Storage, worker: UUID, *ids: UUID, **changes: object) -> list[UUID]:
    """Claim jobs of `KEY` as a worker of the default queue does; return which it got."""
    claims = storage.claim_limited(worker, limited(*ids), [QUEUE], **changes)
    return [claim.id for claim in claims]


def finish(storage: Storage, *claims: Claim) -> None:
    assert storage.end_many([ending(c, "dead", outcome="failed") for c in claims]) == []


# --- what is counted ------------------------------------------------------------------------------


def test_the_room_of_a_key_is_its_number_less_what_runs(storage: Storage, worker: UUID) -> None:
    limit(running=3)
    first, *_ = sorted(insert(storage, 2, limit_key=KEY))
    insert(storage, limit_key="customer:7")
    assert storage.read_rooms([KEY])[KEY].places == 3
    start(storage, worker, first)
    rooms = storage.read_rooms([KEY, "customer:7"])
    assert [rooms[key].places for key in (KEY, "customer:7")] == [2, 3]


def test_the_number_of_one_key_goes_before_that_of_its_name(storage: Storage) -> None:
    limit("customer", 3)
    limit(KEY, 0)
    rooms = storage.read_rooms([KEY, "customer:7", "customer"])
    assert [rooms[k].places for k in (KEY, "customer:7", "customer")] == [0, 3, 3]


def test_a_lifted_limit_is_no_limit_and_a_missing_one_lets_one_at_a_time(storage: Storage) -> None:
    limit(running=None)
    assert storage.read_rooms([KEY])[KEY].places is None
    assert storage.read_rooms(["nobody:1"])["nobody:1"].places == 1
    assert storage.read_rooms(["queue:mail"])["queue:mail"].places is None


def test_a_job_that_ended_or_was_taken_back_is_not_counted(storage: Storage, worker: UUID) -> None:
    limit(running=1)
    (job,) = insert(storage, limit_key=KEY)
    (claim,) = storage.claim_limited(worker, limited(job), [QUEUE])
    assert storage.read_rooms([KEY])[KEY].places == 0
    storage.end_many([ending(claim, "ready", outcome="lost", suspicion=1)])
    assert storage.read_rooms([KEY])[KEY].places == 1


# --- claim ----------------------------------------------------------------------------------------


def test_a_claim_takes_no_more_than_fits(storage: Storage, worker: UUID) -> None:
    limit(running=3)
    ids = sorted(insert(storage, 5, limit_key=KEY))
    assert start(storage, worker, *ids) == ids[:3]
    assert start(storage, worker, *ids[3:]) == []
    assert states(*ids) == ["running"] * 3 + ["ready"] * 2


def test_a_claim_of_several_keys_fits_each(storage: Storage, worker: UUID) -> None:
    limit(running=1)
    ids = placed(storage, [f"customer:{n % 2}" for n in range(4)])
    jobs = [one for n, i in enumerate(ids) for one in limited(i, key=f"customer:{n % 2}")]
    assert [c.id for c in storage.claim_limited(worker, jobs, [QUEUE])] == ids[:2]


def test_a_claim_carries_its_key(storage: Storage, worker: UUID) -> None:
    (job,) = insert(storage, limit_key=KEY)
    (claim,) = storage.claim_limited(worker, limited(job), [QUEUE])
    assert (claim.limit_key, claim.fence, claim.worker) == (KEY, 1, worker)
    (held,) = storage.running_of([worker])
    assert held.limit_key == KEY


def test_ordinary_claims_leave_jobs_with_a_limit(storage: Storage, worker: UUID) -> None:
    insert(storage, limit_key=KEY)
    insert(storage, queue="mail")
    Queue.objects.create(name="mail", limited=True)
    (free,) = insert(storage)
    assert [c.id for c in storage.claim_many(worker, [QUEUE, "mail"], [TASK], 10)] == [free]
    windows = storage.read_windows([QUEUE, "mail"], [FRONT] * 2, [TASK])
    assert [(w.is_usable, w.has_limited) for w in windows] == [(False, True), (False, True)]


def test_beside_limited_ones_only_those_among_the_most_urgent_are_claimed(
    storage: Storage, worker: UUID
) -> None:
    ids = placed(storage, [None, KEY, None, None])
    claims, left = storage.claim_beside_limited(worker, [QUEUE], [TASK], 3)
    assert [c.id for c in claims] == [ids[0], ids[2]]
    assert left == limited(ids[1])


def test_a_job_that_moved_or_changed_meanwhile_is_not_claimed(
    storage: Storage, worker: UUID
) -> None:
    limit(running=9)
    moved, other_key, gone, paused = sorted(insert(storage, 4, limit_key=KEY))
    jobs = limited(moved, other_key, gone, paused)
    Job.objects.filter(pk=moved).update(queue="mail")
    Job.objects.filter(pk=other_key).update(limit_key="customer:7")
    storage.cancel_waiting([gone], "")
    Queue.objects.create(name=QUEUE, paused=True)
    assert storage.claim_limited(worker, jobs, [QUEUE]) == []
    storage.mark_dead(worker, "test")
    Queue.objects.update(paused=False)
    assert storage.claim_limited(worker, jobs, [QUEUE]) == []


def test_nobody_starts_before_a_parked_job_that_stands_ahead(
    storage: Storage, worker: UUID
) -> None:
    limit(running=1)
    parked, late = placed(storage, [KEY, KEY])
    storage.park_limited([parked])
    assert start(storage, worker, late) == []
    assert [c.id for c in storage.claim_limited(worker, limited(late), ["mail"])] == [late]


@pytest.mark.parametrize("queues", [["mail"], [QUEUE]], ids=["elsewhere", "paused"])
def test_what_is_parked_where_it_cannot_start_holds_nobody_up(
    storage: Storage, worker: UUID, queues: list[str]
) -> None:
    limit(running=1)
    (parked,) = insert(storage, now=NOON, limit_key=KEY, queue=queues[0])
    storage.park_limited([parked])
    (late,) = insert(storage, limit_key=KEY, queue="reports")
    if queues == [QUEUE]:
        Queue.objects.create(name=QUEUE, paused=True)
    served = ["reports", *(queues if queues == [QUEUE] else [])]
    (claim,) = storage.claim_limited(worker, limited(late, queue="reports"), served)
    assert claim.id == late


def test_a_queue_with_a_limit_counts_all_its_jobs_whatever_their_key(
    storage: Storage, worker: UUID
) -> None:
    limit("queue:default", 2)
    limit(running=9)
    storage.flag_queues()
    ids = placed(storage, [KEY, KEY, None, None])
    claims, left = storage.claim_beside_limited(worker, [QUEUE], [TASK], 10)
    assert (claims, [job.id for job in left]) == ([], ids)
    assert [job.keys for job in left] == [(KEY, "queue:default")] * 2 + [("queue:default",)] * 2
    assert [c.id for c in storage.claim_limited(worker, left, [QUEUE])] == ids[:2]
    assert storage.read_rooms(["queue:default"])["queue:default"].is_full


def test_lifting_the_limit_of_a_queue_gives_it_back_to_ordinary_claims(
    storage: Storage, worker: UUID
) -> None:
    limit("queue:default", 1)
    storage.flag_queues()
    (job,) = insert(storage)
    assert storage.claim_many(worker, [QUEUE], [TASK], 1) == []
    limit("queue:default", None)
    storage.flag_queues()
    assert [c.id for c in storage.claim_many(worker, [QUEUE], [TASK], 1)] == [job]


# --- claims at the same time ----------------------------------------------------------------------


@pytest.mark.postgres_only("on SQLite one claim waits for the other's write lock")
def test_a_key_that_another_claim_holds_is_passed_over(storage: Storage, other: Storage) -> None:
    limit(running=3)
    first, second = sorted(insert(storage, 2, limit_key=KEY))
    with transaction_on(other.connection):
        other.claim_limited(register(other), limited(first), [QUEUE])  # not yet committed
        assert start(storage, register(storage), second) == []
    assert start(storage, register(storage), second) == [second]


@pytest.mark.parametrize("most", [1, 3])
def test_claims_at_the_same_time_never_run_more_than_the_limit(
    open_storage: Callable[[], Storage], most: int
) -> None:
    limit(running=most)
    storages = [open_storage() for _ in range(4)]
    workers = [register(storage) for storage in storages]
    waiting = insert(storages[0], 24, limit_key=KEY)
    peaks: list[int] = []
    begin = threading.Barrier(len(storages))

    def drain(storage: Storage, worker: UUID) -> None:
        begin.wait()
        while jobs := storage.find_limited([QUEUE], [TASK], 5):
            claims = storage.claim_limited(worker, jobs, [QUEUE])
            peaks.append(len(storage.running_of(workers)))
            finish(storage, *claims)

    threads = [
        threading.Thread(target=drain, args=pair) for pair in zip(storages, workers, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(states(*waiting)) == {"dead"}
    assert max(peaks) == most


# --- park and admit -------------------------------------------------------------------------------


def test_parking_says_why_and_changes_nothing_else(storage: Storage, worker: UUID) -> None:
    (job,) = insert(storage, limit_key=KEY)
    (free,) = insert(storage)
    rank = row(job).rank
    assert storage.park_limited([job, free]) == {KEY}
    assert (row(job).state, row(job).reason, row(job).rank) == ("blocked", "limit", rank)
    assert states(free) == ["ready"]
    assert storage.park_limited([job]) == set()


def test_admission_fills_the_room_by_rank_over_ready_and_parked(storage: Storage) -> None:
    ids = placed(storage, [KEY] * 6)
    storage.park_limited([ids[n] for n in (0, 2, 3, 5)])
    assert storage.admit_limited({KEY: 3}) == [(KEY, QUEUE)] * 2
    assert states(*ids) == ["ready", "ready", "ready", "blocked", "ready", "blocked"]
    assert storage.admit_limited({KEY: 3}) == []
    assert row(ids[0]).reason == ""


def test_admission_passes_over_paused_and_other_queues(storage: Storage) -> None:
    ids = {
        queue: insert(storage, now=NOON + timedelta(seconds=n), limit_key=KEY, queue=queue)[0]
        for n, queue in enumerate(["paused", "elsewhere", "mine"])
    }
    Queue.objects.create(name="paused", paused=True)
    storage.park_limited(list(ids.values()))
    assert storage.admit_limited({KEY: 1}, ["mine", "paused"]) == [(KEY, "mine")]
    assert storage.admit_limited({KEY: 1}) == [(KEY, "elsewhere")]
    Queue.objects.update(paused=False)
    assert storage.admit_limited({KEY: 2}) == [(KEY, "paused")]


def test_admission_leaves_jobs_that_are_blocked_for_other_reasons(storage: Storage) -> None:
    (unknown,) = insert(storage, now=NOON, limit_key=KEY, task="app.gone")
    storage.park_unknown([TASK], 10)
    (job,) = insert(storage, limit_key=KEY)
    storage.park_limited([job])
    assert storage.parked_keys("", 10) == [KEY]
    assert storage.admit_limited({KEY: 1}) == [(KEY, QUEUE)]
    assert states(unknown, job) == ["blocked", "ready"]
    assert storage.parked_keys("", 10) == []


@pytest.mark.postgres_only("SQLite has no row locks: another writer's transaction is waited for")
def test_a_locked_row_is_passed_over(storage: Storage) -> None:
    (job,) = insert(storage, limit_key=KEY)
    lock = "SELECT 1 FROM jobqueue_job WHERE id = %s FOR UPDATE"
    with transaction.atomic():
        run_sql(connection, lock, [job])
        assert storage.park_limited([job]) == set()
    storage.park_limited([job])
    with transaction.atomic():
        run_sql(connection, lock, [job])
        assert storage.admit_limited({KEY: 1}) == []


def test_parked_keys_come_in_order_and_in_portions(storage: Storage) -> None:
    keys = [f"customer:{n}" for n in range(5)]
    storage.park_limited([i for key in keys for i in insert(storage, 3, limit_key=key)])
    insert(storage, limit_key="customer:9")
    assert storage.parked_keys("", 3) == keys[:3]
    assert storage.parked_keys(keys[2], 3) == keys[3:]
    assert storage.parked_keys(keys[4], 3) == []


# --- rates ----------------------------------------------------------------------------------------


def test_no_more_start_in_any_period_than_the_rate_says(storage: Storage, worker: UUID) -> None:
    limit(rate=3, per=60.0)
    ids = sorted(insert(storage, 30, limit_key=KEY))
    started: list[datetime] = []
    for second in range(0, 300, 7):
        now = NOON + timedelta(seconds=second)
        waiting = [i for i in ids if row(i).state == "ready"]
        started += [now] * len(start(storage, worker, *waiting[:5], now=now))
    for first, fourth in zip(started, started[3:], strict=False):
        assert fourth - first >= timedelta(seconds=60)
    assert len(started) >= 3 * 4  # and hardly fewer: a start counts for a period and a 60th


def test_a_start_counts_until_its_period_is_over(storage: Storage, worker: UUID) -> None:
    limit(rate=2, per=10.0)
    ids = sorted(insert(storage, 4, limit_key=KEY))
    assert start(storage, worker, *ids[:1], now=NOON) == ids[:1]
    assert start(storage, worker, *ids[1:], now=NOON + timedelta(seconds=4)) == [ids[1]]
    room = storage.read_rooms([KEY], NOON + timedelta(seconds=4))[KEY]
    assert (room.places, room.opens_in) == (0, pytest.approx(6.0))
    assert start(storage, worker, *ids[2:], now=NOON + timedelta(seconds=9.9)) == []
    assert start(storage, worker, *ids[2:], now=NOON + timedelta(seconds=10)) == [ids[2]]


def test_a_failed_or_returned_run_has_started_too(storage: Storage, worker: UUID) -> None:
    limit(rate=1, per=60.0)
    (job,) = insert(storage, limit_key=KEY)
    (claim,) = storage.claim_limited(worker, limited(job), [QUEUE], NOON)
    storage.end_many([ending(claim, "ready")])
    assert start(storage, worker, job, now=NOON + timedelta(seconds=30)) == []


def test_a_rate_of_a_queue_counts_all_its_jobs(storage: Storage, worker: UUID) -> None:
    limit("queue:default", rate=2, per=60.0)
    storage.flag_queues()
    insert(storage, 3)
    _, left = storage.claim_beside_limited(worker, [QUEUE], [TASK], 10)
    assert len(storage.claim_limited(worker, left, [QUEUE], NOON)) == 2
    assert storage.read_rooms(["queue:default"], NOON)["queue:default"].is_full


def test_a_claim_that_is_not_committed_used_nothing(storage: Storage, worker: UUID) -> None:
    limit(rate=1, per=60.0)
    (job,) = insert(storage, limit_key=KEY)

    def die() -> None:
        with transaction_on(storage.connection):
            assert start(storage, worker, job, now=NOON) == [job]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        die()
    assert LimitUse.objects.count() == 0


def test_starts_are_kept_in_few_rows_and_forgotten(storage: Storage, worker: UUID) -> None:
    limit(rate=1_000, per=60.0)
    for second in range(0, 240, 2):
        (job,) = insert(storage, limit_key=KEY)
        start(storage, worker, job, now=NOON + timedelta(seconds=second))
    assert LimitUse.objects.count() <= 62
    LimitUse.objects.update(last_at=NOON - timedelta(days=3_000))
    assert storage.prune_uses() > 0
    assert LimitUse.objects.count() == 0


# --- numbers --------------------------------------------------------------------------------------


def coded(key: str, running: int | None, source: str = "app.tasks.send") -> CodedLimit:
    return CodedLimit(key=key, running=running, rate=None, per=None, source=source)


def numbers() -> dict[str, tuple[int | None, int | None]]:
    rows = Limit.objects.values_list("key", "running", "code_running")
    return {key: (running, code) for key, running, code in rows}


def test_what_the_code_says_is_written_down_changed_and_lifted(storage: Storage) -> None:
    storage.seed_limits([coded("mailgun", 3), coded("queue:mail", 2, "default")], ["default"])
    assert numbers() == {"mailgun": (3, 3), "queue:mail": (2, 2)}
    storage.seed_limits([coded("mailgun", 5)], ["default"])
    assert numbers() == {"mailgun": (5, 5), "queue:mail": (None, None)}
    assert list(Queue.objects.values_list("name", "limited")) == [("mail", False)]


def test_the_code_of_others_is_left_alone(storage: Storage) -> None:
    storage.seed_limits([coded("mailgun", 3, "other.tasks.send")], ["default"])
    storage.seed_limits([], ["default", "app.tasks.send"])
    assert numbers() == {"mailgun": (3, 3)}


def test_an_operators_numbers_hold_whatever_the_code_says(storage: Storage) -> None:
    storage.seed_limits([coded("mailgun", 3)], ["default"])
    Limit.objects.update(running=1, set_by="kim")
    storage.seed_limits([coded("mailgun", 5)], ["default"])
    assert numbers() == {"mailgun": (1, 5)}
    storage.seed_limits([], ["app.tasks.send"])
    assert numbers() == {"mailgun": (1, None)}


def test_processes_that_start_together_seed_without_a_deadlock(
    open_storage: Callable[[], Storage],
) -> None:
    storages = [open_storage() for _ in range(4)]
    errors: list[BaseException] = []

    def seed(storage: Storage, number: int) -> None:
        try:
            for n in range(5):
                storage.seed_limits([coded(f"name{k}", number + n) for k in range(20)], ["default"])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=seed, args=(s, n)) for n, s in enumerate(storages, 1)]
    with ExitStack() as stack:
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
    assert errors == []
    assert len(numbers()) == 20
