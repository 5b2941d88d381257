"""Schedules: read by the database's clock, settled by compare-and-set."""

from collections.abc import Callable

from jobqueue.models import Job, Schedule, Tick
from jobqueue.storage import Storage
from jobqueue.storage.schedules import Move, NewTick, ScheduleRow
from tests.engine.timetable import HOURLY, NOON, make, minutes
from tests.storage.making import insert, new_job, row


def read(storage: Storage) -> ScheduleRow:
    (found,) = storage.read_schedules(["default"], everything=True)[1]
    return found


def moved(of: ScheduleRow, minutes_on: float = 60, **changes: object) -> Move:
    assert of.last_tick is not None
    by = minutes(minutes_on)
    move = Move(of.plan, of.last_tick + by, of.last_tick + 2 * by)
    return move._replace(**changes)


def test_rows_are_read_with_the_time_they_are_about(storage: Storage) -> None:
    make(arguments={"args": ["é"], "kwargs": {}}, start_at=NOON, priority=-3)
    clock, (found,) = storage.read_schedules(["default"], now=NOON)
    assert clock == NOON
    assert found.arguments == '{"args":["é"],"kwargs":{}}'
    assert (found.last_tick, found.start_at, found.priority) == (NOON, NOON, -3)
    assert (found.enabled, found.at, found.look_at) == (True, None, None)
    assert found.problem == ""


def test_the_clock_is_told_also_without_rows(storage: Storage) -> None:
    assert storage.read_schedules(["default"], now=NOON) == (NOON, [])
    before = storage.clock()
    assert storage.read_schedules(["default"])[0] >= before


def test_what_is_due_is_read(storage: Storage) -> None:
    for name, changes in {
        "new": {"look_at": None},
        "due": {"look_at": NOON},
        "later": {"look_at": NOON + minutes(1)},
        "disabled": {"look_at": NOON, "enabled": False},
        "of another alias": {"look_at": NOON, "backend": "slow"},
    }.items():
        make(name)
        Schedule.objects.filter(name=name).update(**changes)
    found = {row.name for row in storage.read_schedules(["default"], now=NOON)[1]}
    assert found == {"new", "due"}
    found = {r.name for r in storage.read_schedules(["default"], everything=True, now=NOON)[1]}
    assert found == {"new", "due", "later", "disabled"}


def test_of_two_that_read_the_same_one_moves_it(storage: Storage, other: Storage) -> None:
    make()
    one, two = read(storage), read(other)
    assert storage.move_schedule(one, moved(one))
    assert not other.move_schedule(two, moved(two))
    assert read(other).last_tick == NOON + minutes(60)


def test_what_was_changed_since_is_not_moved(storage: Storage) -> None:
    make()
    for changes in (
        {"version": 2},
        {"plan": "another"},
        {"enabled": False},
        {"last_tick": NOON + minutes(1)},
    ):
        seen = read(storage)
        Schedule.objects.update(**changes)
        assert not storage.move_schedule(seen, moved(seen))


def test_the_last_tick_never_moves_back(storage: Storage) -> None:
    make()
    seen = read(storage)
    assert storage.move_schedule(seen, moved(seen, -60))
    assert read(storage).last_tick == NOON


def test_a_row_without_a_last_tick_is_moved_once(storage: Storage, other: Storage) -> None:
    Schedule.objects.bulk_create([Schedule(name="raw", task="app.task", **HOURLY)])
    one, two = read(storage), read(other)
    assert one.last_tick is None
    assert storage.move_schedule(one, Move("plan", NOON, None))
    assert not other.move_schedule(two, Move("plan", NOON, None))


def test_an_error_keeps_the_time_it_was_first_seen(storage: Storage) -> None:
    make()
    for n, (error, first) in enumerate([("a", 0), ("a", 0), ("b", 2), ("", None)]):
        seen = read(storage)
        storage.move_schedule(seen, moved(seen, 0, error=error), NOON + minutes(n))
        found = Schedule.objects.get()
        assert found.error == error
        assert found.error_at == (None if first is None else NOON + minutes(first))


def test_a_time_written_by_django_compares_as_one_of_ours(storage: Storage) -> None:
    """On SQLite they have other numbers of decimals."""
    for micro in (0, 120_000, 123_000):
        Schedule.objects.all().delete()
        make(since=NOON.replace(microsecond=micro))
        seen = read(storage)
        assert storage.move_schedule(seen, moved(seen))


def test_all_of_a_tick_is_written_or_nothing(storage: Storage, other: Storage) -> None:
    made = make()
    seen = read(storage)

    def run() -> None:
        assert storage.move_schedule(seen, moved(seen))
        storage.insert_jobs([new_job(schedule="report", tick=NOON)])
        storage.insert_ticks(made.pk, [NewTick(tick=NOON, outcome="missed", missed=3)], NOON)
        raise ZeroDivisionError

    for _ in range(2):
        try:
            storage.in_one(run)
        except ZeroDivisionError:
            pass
        assert (Job.objects.count(), Tick.objects.count()) == (0, 0)
        assert read(other).last_tick == NOON


def test_a_job_carries_its_schedule_and_why_it_waits(storage: Storage) -> None:
    storage.insert_jobs(
        [
            new_job(),
            new_job(schedule="report", tick=NOON, blocked="overlap"),
            new_job(schedule="report", run_at=NOON),
        ]
    )
    rows = Job.objects.order_by("id").values_list("schedule", "tick", "state", "reason")
    assert set(rows) == {
        ("", None, "ready", ""),
        ("report", NOON, "blocked", "overlap"),
        ("report", None, "scheduled", ""),
    }
    assert storage.live_of_schedule("report") == 2
    assert storage.live_of_schedule("") == 0


def test_waiting_jobs_are_admitted_one_after_the_other(
    open_storage: Callable[[], Storage],
) -> None:
    storage, other = open_storage(), open_storage()
    (first,) = insert(storage, schedule="a", now=NOON)
    (second,) = insert(storage, schedule="a", blocked="overlap", now=NOON)
    (third,) = insert(storage, schedule="a", blocked="overlap", now=NOON + minutes(1))
    (elsewhere,) = insert(storage, schedule="b", blocked="overlap", run_at=NOON, queue="mail")
    assert storage.admit_overlapping(10, now=NOON - minutes(1)) == ["mail"]
    assert row(elsewhere).state == "scheduled"
    now = NOON + minutes(2)
    assert storage.admit_overlapping(10, now) == []
    storage.cancel_waiting([first], "")
    assert storage.admit_overlapping(10, now) == ["default"]
    assert other.admit_overlapping(10, now) == []
    assert [row(job).state for job in (second, third)] == ["ready", "blocked"]
