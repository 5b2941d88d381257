"""Rollups: every attempt is counted, and none twice, whoever counts and whatever happens then."""

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from jobqueue.engine import rollups
from jobqueue.engine.rollups import catch_up, prune_rollups, roll_up
from jobqueue.histogram import load
from jobqueue.models import Attempt, ErrorGroup, Rolling, Rollup
from jobqueue.states import Outcome
from jobqueue.storage import Storage
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.postgres import PostgresStorage
from jobqueue.storage.records import Success
from tests.statistics.making import (
    NOON,
    OTHER_WORKER,
    attempt,
    counted,
    expected,
    failure,
    record,
)
from tests.storage.making import claim, insert, register, run_sql

LATER = timedelta(minutes=5)
"""Longer than any pause between turns."""


def test_what_a_worker_finishes_is_counted_by_task_and_by_worker(storage: Storage) -> None:
    worker = register(storage)
    insert(storage, 3)
    done = claim(storage, worker)
    storage.finish_many(worker, [Success(c.id, c.fence, "null", 1.0, 0.0) for c in done])

    turn = roll_up(storage)

    assert turn is not None
    assert (turn.counted, turn.is_behind) == (3, False)
    assert counted() == expected()
    names = {(r.kind, r.queue, r.name, r.succeeded) for r in Rollup.objects.filter(seconds=60)}
    assert names == {("task", "default", "app.task", 3), ("worker", "", worker.hex, 3)}


def test_minutes_and_hours_are_those_of_utc(storage: Storage) -> None:
    record(attempt(NOON - timedelta(microseconds=1)), attempt(NOON))
    catch_up(storage)
    starts = Rollup.objects.filter(kind="task").order_by("seconds", "at")
    assert [(r.seconds, r.at.isoformat()) for r in starts] == [
        (60, "2026-03-01T11:59:00+00:00"),
        (60, "2026-03-01T12:00:00+00:00"),
        (3600, "2026-03-01T11:00:00+00:00"),
        (3600, "2026-03-01T12:00:00+00:00"),
    ]


def test_every_outcome_is_counted_in_its_column(storage: Storage) -> None:
    record(*(attempt(outcome=outcome.value) for outcome in Outcome))
    catch_up(storage)
    assert counted() == expected()
    hour = Rollup.objects.get(kind="task", seconds=3600)
    assert {getattr(hour, outcome.value) for outcome in Outcome} == {1}


def test_what_is_not_known_is_in_no_histogram(storage: Storage) -> None:
    """The end of a lost attempt is when it was noticed; old ones do not say when they were due."""
    record(attempt(waited=None), attempt(outcome="lost", ran=900.0))
    catch_up(storage)
    minute = Rollup.objects.get(kind="task", seconds=60)
    assert load(minute.waits).total() == 1
    assert (load(minute.runs).total(), minute.run_seconds) == (1, 0.5)


def test_turns_add_up_to_the_whole(storage: Storage, other: Storage) -> None:
    """Any history in any portions, counted in turn by two schedulers, is counted once."""
    chance = random.Random(1)
    for _ in range(30):
        record(
            *(
                attempt(
                    NOON + timedelta(seconds=chance.uniform(-200, 200)),
                    waited=chance.choice([None, chance.lognormvariate(0, 3)]),
                    ran=chance.lognormvariate(-3, 3),
                    worker=OTHER_WORKER if chance.random() < 0.3 else attempt().worker,
                    task=f"shop.task{chance.randrange(4)}",
                    queue=chance.choice(["default", "mail"]),
                    outcome=chance.choice(list(Outcome)).value,
                )
                for _ in range(chance.randrange(30))
            )
        )
        now = storage.clock() + LATER * _
        roll_up(chance.choice([storage, other]), now=now, limit=chance.randrange(1, 30))
    catch_up(storage)
    assert counted() == expected()
    assert Rollup.objects.filter(kind="task", seconds=60).count() > 10


def test_a_limited_turn_says_that_more_is_waiting(storage: Storage) -> None:
    record(*(attempt() for _ in range(5)))
    first = roll_up(storage, limit=3)
    assert first is not None
    assert (first.counted, first.is_behind) == (3, True)
    assert Rolling.objects.get().rolled_at is None
    last = roll_up(storage, now=storage.clock() + LATER, limit=3)
    assert last is not None
    assert (last.counted, last.is_behind) == (2, False)
    assert Rolling.objects.get().rolled_at is not None


def test_counting_begins_with_the_first_attempt_there_is(storage: Storage) -> None:
    Rolling.objects.all().delete()
    record(attempt(), attempt())
    assert roll_up(storage) is not None
    assert counted() == expected()


# --- one at a time ----------------------------------------


def test_nobody_counts_while_there_is_nothing_new(storage: Storage) -> None:
    assert roll_up(storage) is None
    record(attempt())
    assert roll_up(storage) is not None
    assert roll_up(storage, now=storage.clock() + LATER) is None


def test_nobody_counts_again_before_it_is_time(storage: Storage, other: Storage) -> None:
    record(attempt())
    assert roll_up(storage) is not None
    record(attempt())
    assert roll_up(other) is None
    assert roll_up(other, now=storage.clock() + LATER) is not None
    assert counted() == expected()


def test_a_clock_that_steps_back_does_not_stop_the_counting(storage: Storage) -> None:
    record(attempt())
    assert roll_up(storage, now=storage.clock() + timedelta(hours=2)) is not None
    record(attempt())
    assert roll_up(storage) is not None


@pytest.mark.parametrize(("cost", "pause"), [(0.0, 5.0), (0.1, 5.0), (1.0, 50.0), (90.0, 300.0)])
def test_counting_takes_a_small_share_of_the_time(cost: float, pause: float) -> None:
    assert rollups._pause(cost, is_behind=False) == pause
    assert rollups._pause(cost, is_behind=True) == min(cost * 50, 300.0)


@pytest.mark.postgres_only("SQLite has one writer at a time")
def test_who_comes_while_another_counts_does_nothing(storage: Storage, other: Storage) -> None:
    record(attempt(), attempt())
    results = []

    def while_it_counts(_: object) -> None:
        results.append(roll_up(other))

    roll_up_with(storage, after_sums=while_it_counts)
    assert results == [None]
    assert counted() == expected()


@pytest.mark.postgres_only("SQLite has one writer at a time")
def test_who_looked_before_another_counted_does_nothing(
    storage: PostgresStorage, other: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its snapshot is older than the other's count: it would count the same attempts again."""
    record(attempt(), attempt())
    rows = other._rows

    def late(name: str, /, **parameters: object) -> list[tuple[object, ...]]:
        if name == "hold_rolling":
            rows("look_rolling", early=True, now=None)  # takes the transaction's snapshot
            assert roll_up(storage) is not None
        return rows(name, **parameters)

    monkeypatch.setattr(other, "_rows", late)
    assert roll_up(other) is None
    assert counted() == expected()


@pytest.mark.parametrize(
    "statement", ["write_rollups", "add_to_error_groups", "save_rolling", "tally_errors"]
)
def test_a_turn_that_dies_anywhere_leaves_nothing(
    storage: Storage, other: Storage, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    record(attempt(), failure())

    def die(*args: object, **kwargs: object) -> None:
        raise ConnectionError("the process is gone")

    monkeypatch.setattr(storage, statement, die)
    with pytest.raises(ConnectionError):
        roll_up(storage)
    assert (Rollup.objects.count(), ErrorGroup.objects.count()) == (0, 0)
    roll_up(other)
    assert counted() == expected()
    assert ErrorGroup.objects.get().count == 1


def roll_up_with(storage: Storage, after_sums: Callable[[object], None]) -> None:
    """Count, and call `after_sums` between the sums and their rows."""
    read = storage.read_rollups

    def read_rollups(keys):  # type: ignore[no-untyped-def]
        after_sums(keys)
        return read(keys)

    storage.read_rollups = read_rollups  # type: ignore[method-assign]
    try:
        assert roll_up(storage) is not None
    finally:
        del storage.read_rollups  # type: ignore[method-assign]


# --- ids that appear late ----------------------------------------

gaps_only = pytest.mark.postgres_only("on SQLite ids appear in the order in which they were drawn")


def save_on(storage: Storage, one: Attempt) -> None:
    """Insert an attempt in the transaction that is open on this storage's connection."""
    columns = [f for f in Attempt._meta.concrete_fields if not f.primary_key]
    names = ", ".join(f.column for f in columns)
    marks = ", ".join(["%s"] * len(columns))
    values = [f.value_from_object(one) for f in columns]
    run_sql(storage.connection, f"INSERT INTO jobqueue_attempt ({names}) VALUES ({marks})", values)


@gaps_only
def test_an_attempt_that_becomes_visible_late_is_counted_then(
    storage: Storage, other: Storage
) -> None:
    with transaction_on(other.connection):
        save_on(other, attempt(task="shop.slow_commit"))
        record(attempt(), attempt())
        assert roll_up(storage).counted == 2  # type: ignore[union-attr]
        assert roll_up(storage, now=storage.clock() + LATER).counted == 0  # type: ignore[union-attr]
    assert roll_up(storage, now=storage.clock() + LATER * 2).counted == 1  # type: ignore[union-attr]
    assert counted() == expected()
    assert Rolling.objects.get().gaps == []


@gaps_only
def test_of_a_batch_only_what_is_missing_is_looked_for(storage: Storage, other: Storage) -> None:
    record(attempt())
    with transaction_on(other.connection):
        for _ in range(3):
            save_on(other, attempt())
            record(attempt())
        roll_up(storage)
    ids = list(Attempt.objects.order_by("id").values_list("id", flat=True))
    missing = [[ids[n], ids[n]] for n in (1, 3, 5)]
    assert [gap[:2] for gap in sorted(Rolling.objects.get().gaps)] == missing
    catch_up(storage)
    assert counted() == expected()


@gaps_only
def test_an_id_that_nobody_used_is_forgotten(storage: Storage) -> None:
    run_sql(connection, "SELECT nextval(pg_get_serial_sequence('jobqueue_attempt', 'id'))")
    record(attempt())
    now = storage.clock()
    roll_up(storage, now=now)
    assert len(Rolling.objects.get().gaps) == 1
    roll_up(storage, now=now + timedelta(seconds=590))
    assert len(Rolling.objects.get().gaps) == 1
    roll_up(storage, now=now + timedelta(seconds=610))
    assert Rolling.objects.get().gaps == []
    assert roll_up(storage, now=now + timedelta(hours=1)) is None


@gaps_only
def test_only_so_many_gaps_are_remembered(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups, "MAX_GAPS", 2)
    for _ in range(4):
        run_sql(connection, "SELECT nextval(pg_get_serial_sequence('jobqueue_attempt', 'id'))")
        record(attempt())
    roll_up(storage)
    assert len(Rolling.objects.get().gaps) == 2
    assert counted() == expected()


@gaps_only
def test_nothing_is_lost_or_doubled_while_everybody_is_at_it(
    open_storage: Callable[[], Storage],
) -> None:
    """Three write, in transactions that end out of order or are rolled back, and two count."""
    writers = [open_storage() for _ in range(3)]
    counters = [open_storage() for _ in range(2)]
    is_over = threading.Event()
    errors: list[BaseException] = []

    def guarded(run: Callable[[Storage], None], storage: Storage) -> threading.Thread:
        def target() -> None:
            try:
                run(storage)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=target)
        thread.start()
        return thread

    def write(storage: Storage) -> None:
        chance = random.Random(writers.index(storage))
        for _ in range(60):
            with suppress(ZeroDivisionError), transaction_on(storage.connection):
                for _ in range(chance.randrange(1, 6)):
                    save_on(storage, attempt(task=f"shop.task{chance.randrange(3)}"))
                if chance.random() < 0.2:
                    raise ZeroDivisionError  # its ids are never used

    def count(storage: Storage) -> None:
        while not is_over.is_set():
            roll_up(storage, early=True, limit=7)

    counting = [guarded(count, each) for each in counters]
    for thread in [guarded(write, each) for each in writers]:
        thread.join(60)
    is_over.set()
    for thread in counting:
        thread.join(60)
    while (turn := roll_up(counters[0], early=True)) is not None and turn.counted:
        pass
    assert errors == []
    assert Attempt.objects.count() > 100
    assert counted() == expected()


# --- error groups ----------------------------------------


def test_alike_failures_are_one_group(storage: Storage) -> None:
    first, last = NOON - timedelta(minutes=3), NOON + timedelta(minutes=1)
    record(failure(last, task="shop.late"), failure(first), failure(NOON), attempt())
    record(failure(NOON, error_fingerprint="a" * 32, error_message="other 'x'"))
    catch_up(storage)

    group = ErrorGroup.objects.get(fingerprint="f" * 32)
    newest = Attempt.objects.get(task="shop.late")
    assert (group.count, group.first_seen, group.last_seen) == (3, first, last)
    assert (group.error_class, group.message) == ("builtins.ValueError", "no order #")
    assert (group.job_id, group.task, group.queue) == (newest.job_id, "shop.late", "default")
    assert ErrorGroup.objects.get(fingerprint="a" * 32).message == "other '…'"


def test_a_group_grows_with_every_turn(storage: Storage) -> None:
    for n in range(3):
        record(failure(NOON + timedelta(minutes=n)), failure(NOON, outcome="lost"))
        catch_up(storage)
    group = ErrorGroup.objects.get()
    assert (group.count, group.first_seen) == (6, NOON)
    assert group.last_seen == NOON + timedelta(minutes=2)
    course = Rollup.objects.filter(kind="error", seconds=60, name="f" * 32).order_by("at")
    assert [(r.failed, r.lost) for r in course] == [(1, 3), (1, 0), (1, 0)]
    assert Rollup.objects.get(kind="error", seconds=3600).failed == 3


def test_what_is_no_failure_makes_no_group(storage: Storage) -> None:
    record(*(failure(outcome=o) for o in ("snoozed", "cancelled", "succeeded")))
    catch_up(storage)
    assert ErrorGroup.objects.count() == 0


def test_of_too_many_kinds_of_errors_the_frequent_ones_are_counted(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups, "TURN_ERRORS", 2)
    record(*(failure(error_fingerprint=f"{n:032}") for n in (1, 2, 2, 3, 3, 3)))
    roll_up(storage)
    assert set(ErrorGroup.objects.values_list("fingerprint", "count")) == {
        (f"{2:032}", 2),
        (f"{3:032}", 3),
    }
    assert Rollup.objects.get(kind="task", seconds=60).failed == 6


# --- pruning ----------------------------------------


def test_old_minutes_go_before_old_hours(storage: Storage) -> None:
    now = datetime.now(UTC)
    for days in (0, 3, 40):
        record(failure(now - timedelta(days=days), error_fingerprint=f"{days:032}"))
    catch_up(storage)
    assert prune_rollups(storage) == 3 + 3 + 3 + 1
    assert prune_rollups(storage) == 0
    assert sorted(Rollup.objects.filter(kind="task").values_list("seconds", flat=True)) == [
        60,
        3600,
        3600,
    ]
    assert set(ErrorGroup.objects.values_list("fingerprint", flat=True)) == {
        f"{0:032}",
        f"{3:032}",
    }


def test_no_more_groups_are_kept_than_somebody_could_look_at(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups, "MAX_ERROR_GROUPS", 3)
    now = datetime.now(UTC)
    record(*(failure(now - timedelta(minutes=n), error_fingerprint=f"{n:032}") for n in range(6)))
    catch_up(storage)
    prune_rollups(storage)
    assert sorted(ErrorGroup.objects.values_list("fingerprint", flat=True)) == [
        f"{n:032}" for n in range(3)
    ]
