"""Limits as workers live them: nobody runs beyond them, and nobody who waits is forgotten."""

import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from jobqueue import control
from jobqueue.conf import options_for
from jobqueue.engine.limits import Taken, Wish, admit, coded_limits, sweep_limits, take, take_alone
from jobqueue.engine.recovery import Death, recover
from jobqueue.exceptions import LeaseLost
from jobqueue.limits import Limit
from jobqueue.models import Job, Queue
from jobqueue.models import Limit as LimitRow
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.records import Claim, Success
from tests.storage.conftest import open_storage, other, storage
from tests.storage.making import QUEUE, TASK, ending, insert, new_job, register, row, states

__all__ = ["open_storage", "other", "storage"]

NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)
"""Long ago: jobs made without a time come after those made at noon."""
KEY = "customer:42"
PATIENCE = 60.0


class Hand:
    """A worker that takes and ends by hand."""

    def __init__(self, storage: Storage, queues: tuple[str, ...] = (QUEUE,), **wish: Any) -> None:
        self.storage = storage
        self.identity = register(storage)
        self.wish = Wish(self.identity, list(queues), [TASK], **wish)

    def take(
        self, room: int = 10, limited: int | None = None, now: datetime | None = None
    ) -> Taken:
        return take(self.storage, self.wish, room, room if limited is None else limited, now)

    def start(self, room: int = 10, **changes: Any) -> list[UUID]:
        taken = self.take(room, **changes)
        return [claim.id for claim in (*taken.limited, *taken.claims)]

    def finish(self, *claims: Claim) -> None:
        successes = [Success(c.id, c.fence, "null", 1.0, 0.0) for c in claims]
        assert self.storage.finish_many(self.identity, successes) == []
        admit(self.storage, (claim.limit_key for claim in claims))

    def end(self, claim: Claim, state: str, **changes: Any) -> None:
        assert self.storage.end_many([ending(claim, state, **changes)]) == []
        admit(self.storage, [claim.limit_key])

    def die(self) -> None:
        recover(self.storage, Death(self.identity, "killed", blamed=False), options_for("default"))


@pytest.fixture
def hand(storage: Storage) -> Hand:
    return Hand(storage)


def limit(key: str = "customer", running: int | None = None, **numbers: float) -> None:
    LimitRow.objects.update_or_create(key=key, defaults={"running": running, **numbers})


def placed(storage: Storage, keys: list[str | None], **changes: Any) -> list[UUID]:
    """Insert a job of each key, a second apart, and return them in their order."""
    return [
        insert(storage, now=NOON + timedelta(seconds=n), limit_key=key, **changes)[0]
        for n, key in enumerate(keys)
    ]


def running(key: str = KEY) -> int:
    return Job.objects.filter(state="running", limit_key=key).count()


def counted(storage: Storage, run: Callable[[], Any]) -> int:
    """Return how many statements `run` sends."""
    sent: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql)
        return execute(sql, params, many, context)

    with storage.connection.execute_wrapper(note):
        run()
    return len(sent)


# --- what stands in front ---------------------------------------------------------------------


@pytest.mark.parametrize("keys", [1, 5_000], ids=["one key", "each its own"])
def test_five_thousand_of_full_keys_do_not_keep_a_free_job_waiting(hand: Hand, keys: int) -> None:
    limit(running=0 if keys > 1 else 1)
    (holder,) = insert(hand.storage, limit_key="customer:0", now=NOON)
    assert hand.start() == ([holder] if keys == 1 else [])
    for chunk in range(5):
        numbers = range(chunk * 1_000, (chunk + 1) * 1_000)
        jobs = [new_job(limit_key=f"customer:{number % keys}") for number in numbers]
        hand.storage.insert_jobs(jobs, NOON)
    (free,) = insert(hand.storage)
    started: list[UUID] = []
    sent = counted(hand.storage, lambda: started.extend(hand.start()))
    assert started == [free]
    # On SQLite each key is a look-up of its own, in the process itself.
    assert sent < (5 * 5_000 if hand.storage.one_host else 100)
    assert Job.objects.filter(state="blocked", reason="limit").count() == 5_000 + (keys > 1)
    insert(hand.storage)
    assert counted(hand.storage, hand.start) <= 6  # what is parked costs nothing


def test_jobs_with_a_limit_take_their_turn_among_the_others(hand: Hand) -> None:
    limit(running=9)
    ids = placed(hand.storage, [None, KEY, None, KEY, None])
    assert sorted(hand.start(4)) == sorted(ids[:4])
    assert hand.start() == ids[4:]


def test_places_that_limits_leave_free_go_to_others(hand: Hand) -> None:
    limit(running=1)
    ids = placed(hand.storage, [KEY, KEY, KEY, None, None])
    assert hand.start(3) == [ids[0], ids[3], ids[4]]
    assert states(*ids[1:3]) == ["blocked", "blocked"]


def test_without_room_for_limited_ones_only_others_are_claimed(hand: Hand) -> None:
    limit(running=9)
    ids = placed(hand.storage, [KEY, None, KEY])
    assert hand.start(3, limited=0) == [ids[1]]
    assert hand.start(3, limited=1) == [ids[0]]
    assert states(ids[2]) == ["ready"]


def test_a_full_queue_keeps_no_other_queue_waiting(storage: Storage) -> None:
    limit("queue:mail", 1)
    storage.flag_queues()
    limit(running=1)
    hand = Hand(storage, ("mail", QUEUE))
    in_mail = placed(storage, [None] * 5, queue="mail")
    keyed, free = placed(storage, [KEY, None])
    assert hand.start(2) == [in_mail[0], keyed]
    taken = hand.take(2)
    assert [c.id for c in taken.claims] == [free]
    assert taken.full_queues == {"mail"}
    assert set(states(*in_mail[1:])) == {"ready"}  # nothing else stands in that lane


def test_a_key_and_a_queue_are_obeyed_together(storage: Storage) -> None:
    limit("queue:mail", 2)
    storage.flag_queues()
    limit(running=1)
    hand = Hand(storage, ("mail",))
    ids = placed(storage, [KEY, KEY, None, None], queue="mail")
    assert hand.start(4) == [ids[0], ids[2]]


def test_a_suspect_that_must_run_alone_obeys_its_limit_too(hand: Hand) -> None:
    limit(running=1)
    first, second = placed(hand.storage, [KEY, KEY])
    (claim,) = hand.take(1).limited
    hand.end(claim, "ready", outcome="lost", suspicion=2, alone=True)
    (runs,) = hand.take(1).limited
    assert (claim.id, runs.id) == (first, second)
    assert len(take_alone(hand.storage, hand.wish)) == 0
    assert states(first) == ["blocked"]
    hand.finish(runs)
    assert [c.id for c in take_alone(hand.storage, hand.wish).limited] == [first]


# --- order ------------------------------------------------------------------------------------


def test_jobs_of_a_limit_of_one_start_in_the_order_of_rank(hand: Hand) -> None:
    limit(running=1)
    ids = placed(hand.storage, [KEY] * 5)
    urgent = insert(hand.storage, limit_key=KEY, now=NOON, priority=10)
    order = []
    while claims := hand.take().limited:
        order += [claim.id for claim in claims]
        hand.finish(*claims)
    assert order == urgent + ids


def test_a_retry_comes_back_at_its_time_and_others_go_ahead_until_then(hand: Hand) -> None:
    limit(running=1)
    first, second, third = placed(hand.storage, [KEY] * 3)
    (claim,) = hand.take().limited
    assert claim.id == first
    hand.end(claim, "retrying", outcome="failed", charged=True, delay=0.0)
    (claim,) = hand.take().limited
    assert claim.id == second  # the retry is not yet promoted
    hand.storage.promote(10)
    hand.finish(claim)
    (claim,) = hand.take().limited
    assert claim.id == third  # due before the retry was
    hand.finish(claim)
    assert hand.start() == [first]


def test_a_job_that_lost_its_worker_or_was_given_back_keeps_its_place(hand: Hand) -> None:
    limit(running=1)
    ids = placed(hand.storage, [KEY] * 3)
    for outcome in (None, "lost"):
        (claim,) = hand.take().limited
        assert claim.id == ids[0]
        hand.take()  # parks the others
        hand.end(claim, "ready", outcome=outcome)
    assert hand.start() == [ids[0]]


def test_a_job_that_comes_while_a_place_gets_free_does_not_overtake(
    hand: Hand, other: Storage
) -> None:
    limit(running=1)
    first, second = placed(hand.storage, [KEY, KEY])
    (claim,) = hand.take().limited
    hand.take()
    assert states(first, second) == ["running", "blocked"]
    (late,) = insert(hand.storage, limit_key=KEY)
    hand.storage.finish_many(hand.identity, [Success(claim.id, claim.fence, "null", 1.0, 0.0)])
    # Its worker has not yet admitted the next; another one claims.
    another = Hand(other)
    assert another.start() == [second]
    assert states(late) == ["blocked"]


# --- nobody is forgotten ----------------------------------------------------------------------


def force(hand: Hand, claim: Claim) -> None:
    assert control.cancel([claim.id], control.Actor("kim", "shell"), force=True).changed


WAYS_OUT: dict[str, Callable[[Hand, Claim], None]] = {
    "finished": lambda hand, claim: hand.finish(claim),
    "dead": lambda hand, claim: hand.end(claim, "dead", outcome="failed", charged=True),
    "retrying": lambda hand, claim: hand.end(
        claim, "retrying", outcome="failed", charged=True, delay=60.0
    ),
    "snoozed": lambda hand, claim: hand.end(claim, "scheduled", outcome="snoozed", delay=60.0),
    "cancelled": lambda hand, claim: hand.end(claim, "cancelled", outcome="cancelled"),
    "forced": force,
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_every_way_out_of_a_run_lets_the_next_start_at_once(hand: Hand, way: str) -> None:
    limit(running=1)
    first, second = placed(hand.storage, [KEY, KEY])
    (claim,) = hand.take().limited
    hand.take()
    assert states(first, second) == ["running", "blocked"]
    WAYS_OUT[way](hand, claim)
    assert hand.start() == [second]


def test_the_jobs_of_a_dead_worker_let_the_next_start(hand: Hand, other: Storage) -> None:
    limit(running=1)
    first, second = placed(hand.storage, [KEY, KEY], on_crash="bury")
    hand.take()
    another = Hand(other)
    assert another.start() == []
    assert states(first, second) == ["running", "blocked"]
    recover(other, Death(hand.identity, "killed"), options_for("default"))
    assert states(first) == ["dead"]
    assert another.start() == [second]


@pytest.mark.parametrize("way", ["cancelled", "expired", "moved"])
def test_a_job_that_was_let_in_and_never_started_passes_its_place_on(hand: Hand, way: str) -> None:
    """The sweep of any worker of the queue sees it, within a poll."""
    limit(running=1)
    first, second, third = placed(hand.storage, [KEY] * 3)
    (claim,) = hand.take().limited
    hand.take()
    hand.finish(claim)
    assert states(first, second, third) == ["succeeded", "ready", "blocked"]
    if way == "cancelled":
        hand.storage.cancel_waiting([second], "operator")
    elif way == "expired":
        Job.objects.filter(pk=second).update(expires_at=NOON)
        hand.storage.expire(10)
    else:
        Job.objects.filter(pk=second).update(queue="elsewhere")
    sweep_limits(hand.storage, [QUEUE])
    assert hand.start() == [third]


def test_what_stands_ready_in_a_paused_or_unserved_queue_holds_no_place(hand: Hand) -> None:
    limit(running=1)
    for queue in ("paused", "unserved"):
        insert(hand.storage, limit_key=KEY, queue=queue, now=NOON)
    Queue.objects.create(name="paused", paused=True)
    (job,) = insert(hand.storage, limit_key=KEY)
    hand.storage.park_limited([job])
    sweep_limits(hand.storage, [QUEUE])
    assert hand.start() == [job]


def test_a_job_parked_while_its_holder_ends_is_let_in_by_whoever_parked_it(
    hand: Hand, other: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ender looks before the parked one is there; the parker looks after."""
    limit(running=1)
    first, second = placed(hand.storage, [KEY, KEY])
    (claim,) = hand.take(1).limited
    another = Hand(other)
    park = other.park_limited

    def park_late(ids: Any) -> Any:
        hand.finish(claim)
        return park(ids)

    monkeypatch.setattr(other, "park_limited", park_late)
    another.take()
    monkeypatch.undo()
    assert states(first, second) == ["succeeded", "running"]


def test_a_job_enqueued_in_an_open_transaction_starts_once_that_commits(hand: Hand) -> None:
    limit(running=1)
    (first,) = insert(hand.storage, limit_key=KEY)
    (claim,) = hand.take().limited
    with transaction.atomic():
        (second,) = insert(storage_for(transaction.get_connection()), limit_key=KEY)
        if hand.storage.vendor == "postgresql":  # SQLite has one writer
            hand.finish(claim)
            assert hand.start() == []
    if hand.storage.vendor == "sqlite":
        hand.finish(claim)
    assert hand.start() == [second]
    assert states(first) == ["succeeded"]


def test_an_operator_who_raises_a_limit_lets_waiting_jobs_start(hand: Hand) -> None:
    limit(running=1)
    ids = placed(hand.storage, [KEY] * 5)
    hand.take()
    hand.take()
    limit(running=3)
    sweep_limits(hand.storage, [QUEUE])
    assert hand.start() == ids[1:3]
    limit(running=None)
    sweep_limits(hand.storage, [QUEUE])
    assert hand.start() == ids[3:]


def test_lowering_a_limit_lets_runs_go_on_and_nobody_start(hand: Hand) -> None:
    limit(running=3)
    ids = placed(hand.storage, [KEY] * 5)
    claims = hand.take(3).limited
    limit(running=1)
    hand.finish(*claims[:2])
    assert hand.start() == []
    hand.finish(claims[2])
    assert hand.start() == [ids[3]]


def test_a_sweep_goes_on_where_the_last_one_stopped(
    hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobqueue.engine.limits.SWEEP_KEYS", 2)
    limit(running=0)
    ids = placed(hand.storage, [f"customer:{n}" for n in range(5)])
    hand.take()
    limit(running=1)
    after, seen = "", []
    for _ in range(3):
        _, after = sweep_limits(hand.storage, None, after)
        seen.append(states(*ids).count("ready"))
    assert (seen, after) == ([2, 4, 5], "")


# --- under faults -----------------------------------------------------------------------------


def test_a_worker_wrongly_declared_dead_changes_no_count(hand: Hand, other: Storage) -> None:
    limit(running=1)
    first, second = placed(hand.storage, [KEY, KEY])
    (stale,) = hand.take().limited
    another = Hand(other)
    hand.die()
    (claim,) = another.take().limited
    assert (claim.id, running()) == (first, 1)
    with pytest.raises(LeaseLost):
        hand.storage.finish_one(stale, "null", 1.0)
    admit(hand.storage, [stale.limit_key])
    assert hand.storage.finish_many(hand.identity, [Success(stale.id, 1, "null", 1.0, 0.0)])
    assert another.start() == []
    assert states(first, second) == ["running", "blocked"]


def test_a_poison_job_of_a_key_is_buried_and_the_next_one_starts(
    open_storage: Callable[[], Storage],
) -> None:
    limit(running=1)
    (poison,) = insert(open_storage(), limit_key=KEY, now=NOON)
    (job,) = insert(open_storage(), limit_key=KEY)
    options = options_for("default")
    for _ in range(3):
        hand = Hand(open_storage())
        assert take_alone(hand.storage, hand.wish).limited or hand.start(1)
        assert running() == 1
        recover(hand.storage, Death(hand.identity, "killed"), options)
        Job.objects.filter(state="retrying").update(run_at=NOON - timedelta(days=4_000))
        hand.storage.promote(10)
    hand = Hand(open_storage())
    assert (row(poison).state, row(poison).reason) == ("dead", "poison")
    assert hand.start() == [job]


def test_killing_holders_a_hundred_times_breaks_no_limit_and_forgets_nobody(
    open_storage: Callable[[], Storage],
) -> None:
    """Each worker dies at a point drawn by lot; what it left undone stays undone."""
    lots = random.Random(42)
    limit(running=3)
    storages = [open_storage() for _ in range(3)]
    ids = insert(storages[0], 60, limit_key=KEY) + insert(storages[0], 5)
    kills = 0
    hands = [Hand(storage) for storage in storages]
    while kills < 100:
        number = lots.randrange(3)
        hand = hands[number]
        step = lots.randrange(4)
        if step == 0:
            take_and_forget_to_look_again(hand)
        else:
            taken = hand.take(2)
            if step == 1 and kills % 4 == 0:  # ended, not yet admitted
                done = [Success(c.id, c.fence, "null", 1.0, 0.0) for c in taken.limited]
                hand.storage.finish_many(hand.identity, done)
        assert running() <= 3
        hand.die()
        kills += 1
        hands[number] = Hand(storages[number])
        if lots.randrange(5) == 0:
            sweep_limits(hand.storage, [QUEUE])
        assert running() <= 3
    last = hands[0]
    while left := Job.objects.exclude(state__in=["succeeded", "dead"]).count():
        taken = last.take()
        last.finish(*taken.limited, *taken.claims)
        sweep_limits(last.storage, [QUEUE])
        assert Job.objects.exclude(state__in=["succeeded", "dead"]).count() < left
    assert set(states(*ids)) == {"succeeded"}


def take_and_forget_to_look_again(hand: Hand) -> None:
    """Claim and park, and die before asking whether there is room again."""
    found = hand.storage.find_limited([QUEUE], [TASK], 10)
    hand.storage.claim_limited(hand.identity, found[:2], [QUEUE])
    hand.storage.park_limited([job.id for job in found[2:]])


def test_workers_that_claim_park_end_and_admit_at_once_need_no_sweep(
    open_storage: Callable[[], Storage],
) -> None:
    limit(running=2)
    storages = [open_storage() for _ in range(4)]
    keys = [f"customer:{n % 3}" for n in range(90)]
    for key in keys:
        insert(storages[0], limit_key=key)
    peaks: list[int] = []
    deadline = time.monotonic() + PATIENCE
    errors: list[BaseException] = []

    def work(storage: Storage, n: int) -> None:
        try:
            hand = Hand(storage)
            while live(storage) and time.monotonic() < deadline:
                taken = hand.take(3)
                peaks.extend(1 - room.places for room in storage.read_rooms(set(keys)).values())
                hand.finish(*taken.limited, *taken.claims)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(s, n)) for n, s in enumerate(storages)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(Job.objects.values_list("state", flat=True)) == {"succeeded"}
    assert max(peaks) <= 1


def live(storage: Storage) -> int:
    counts = storage.state_counts(1_000)
    return sum(n for state, n in counts.items() if state not in ("dead", "running"))


# --- rates ------------------------------------------------------------------------------------


def test_a_rate_admits_when_the_window_moves(hand: Hand) -> None:
    limit(rate=2, per=10.0)
    ids = placed(hand.storage, [KEY] * 5)
    taken = hand.take(now=NOON)
    assert [c.id for c in taken.limited] == ids[:2]
    assert taken.opens == {KEY: pytest.approx(10.0)}
    assert states(*ids[2:]) == ["blocked"] * 3
    hand.finish(*taken.limited)
    assert hand.start(now=NOON + timedelta(seconds=9)) == []
    late = NOON + timedelta(seconds=10)
    admitted = admit(hand.storage, [KEY], None, late)
    assert admitted.queues == {QUEUE}
    assert hand.start(now=late) == ids[2:4]
    assert admit(hand.storage, [KEY], None, late).opens == {KEY: pytest.approx(10.0)}


# --- aging ------------------------------------------------------------------------------------


@pytest.fixture
def lines(hand: Hand) -> SimpleNamespace:
    """One slot and a clock; a job takes half a second, high ones come twice a second."""
    return SimpleNamespace(hand=hand, now=NOON, started={})


def half_a_second(lines: SimpleNamespace, *more: dict[str, Any]) -> None:
    storage = lines.hand.storage
    for job in ({"priority": 2}, *more):
        insert(storage, now=lines.now, **job)
    storage.promote(100, now=lines.now)
    taken = lines.hand.take(1, now=lines.now)
    for claim in (*taken.limited, *taken.claims):
        lines.started[claim.id] = lines.now
        lines.hand.finish(claim)
    lines.now += timedelta(seconds=0.5)


@pytest.mark.parametrize("kind", ["plain", "retry", "limited"])
def test_a_low_job_starts_within_the_bound_under_a_steady_stream_of_high_ones(
    lines: SimpleNamespace, kind: str
) -> None:
    """Two points at 60 s each: the bound is 120 s, and what was ahead when they are over."""
    limit(running=1)
    storage = lines.hand.storage
    if kind == "retry":
        (low,) = insert(storage, now=NOON - timedelta(hours=1))
        (claim,) = lines.hand.take(1, now=NOON).claims
        storage.end_many(
            [ending(claim, "retrying", outcome="failed", charged=True, delay=0.0)], now=NOON
        )
    elif kind == "limited":
        holder, low = placed(storage, [KEY, KEY])
        lines.hand.finish(*lines.hand.take(1, now=NOON).limited)
        assert states(holder, low) == ["succeeded", "ready"]
        storage.park_limited([low])
        admit(storage, [KEY])
    else:
        (low,) = insert(storage, now=NOON)
    while low not in lines.started:
        assert lines.now < NOON + timedelta(seconds=125)
        half_a_second(lines)
    assert lines.started[low] >= NOON + timedelta(seconds=115)


def test_a_high_job_goes_ahead_of_overdue_low_ones_that_are_younger_than_it_is_worth(
    hand: Hand,
) -> None:
    insert(hand.storage, 3, now=NOON - timedelta(seconds=601))
    young = insert(hand.storage, 1_000, now=NOON - timedelta(seconds=599))
    (high,) = insert(hand.storage, now=NOON, priority=10)
    assert len(hand.start(3)) == 3
    assert hand.start(1) == [high]
    assert hand.start(1)[0] in young


# --- what the code says -----------------------------------------------------------------------


def coded(*limits: tuple[str, Limit], queues: dict[str, Limit] | None = None) -> dict[str, Any]:
    tasks: Any = [SimpleNamespace(module_path=path, limit=one) for path, one in limits]
    options: Any = SimpleNamespace(queue_limits=queues or {})
    found = coded_limits(tasks, "default", options)
    return {one.key: (one.running, one.rate, one.per) for one in found}


def test_tasks_and_queues_say_their_limits_by_name() -> None:
    assert coded(
        ("app.a", Limit(1)),
        ("app.b", Limit(2, key="customer:{customer_id}")),
        ("app.c", Limit(rate=5, per=60, name="mailgun")),
        queues={"mail": Limit(7)},
    ) == {
        "app.a": (1, None, None),
        "customer": (2, None, None),
        "mailgun": (None, 5, 60),
        "queue:mail": (7, None, None),
    }


def test_of_limits_that_share_a_name_each_smallest_number_holds() -> None:
    found = coded(
        ("app.a", Limit(5, rate=10, per=1, name="api")),
        ("app.b", Limit(2, rate=100, per=60, name="api")),
        ("app.c", Limit(3, name="api")),
    )
    assert found == {"api": (2, 100, 60)}
