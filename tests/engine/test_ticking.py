"""Ticks become jobs: each at most one, however many schedulers, whatever their clocks say."""

import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from jobqueue import control
from jobqueue.control import Actor
from jobqueue.engine import ticking
from jobqueue.events import subscribe
from jobqueue.models import Job, Schedule, Tick
from jobqueue.storage import Storage
from jobqueue.storage import schedules as storage_schedules
from tests.engine.bench import Bench
from tests.engine.tasks import atomic_job, bodies
from tests.engine.timetable import (
    DAILY,
    HOURLY,
    MINUTELY,
    NOON,
    at,
    history_of,
    jobs_of,
    make,
    minutes,
    tick,
    ticks_of,
    unique_job,
)
from tests.storage.conftest import open_storage, other, storage

__all__ = ["open_storage", "other", "storage"]


# --- one tick, one job ----------------------------------------


def test_a_tick_makes_a_job_that_is_told_its_tick(bench: Bench) -> None:
    bodies["told"] = lambda context: context.tick.isoformat()
    make(arguments={"args": ["told"], "kwargs": {}})
    Schedule.objects.update(task=atomic_job.module_path)
    assert tick(bench.storage, at("03-01 12:59:59")) == set()
    assert tick(bench.storage, at("03-01 13:00:00")) == {"default"}
    (job,) = jobs_of()
    assert (job.state, job.tick, job.schedule) == ("ready", at("03-01 13:00"), "report")
    (claim,) = bench.claim()
    bench.flush(bench.execute(claim))
    assert jobs_of()[0].result == "2027-03-01T13:00:00+00:00"


def test_a_job_without_a_schedule_has_no_tick(bench: Bench) -> None:
    ran = bench.run(lambda context: context.tick is None)
    assert ran.job.result is True


def test_a_tick_is_not_made_again_by_whoever_looks_later(storage: Storage, other: Storage) -> None:
    make()
    for now in ("03-01 13:00:01", "03-01 13:00:01", "03-01 13:59:59"):
        tick(storage, at(now), everything=True)
        tick(other, at(now))
    assert ticks_of() == ["03-01 13:00"]
    assert history_of() == [("03-01 13:00", "enqueued", 0)]


def test_three_schedulers_whose_clocks_differ_and_step_back_make_one_job_a_tick(
    open_storage: Callable[[], Storage],
) -> None:
    make("minutely", plan=MINUTELY)
    make("every 90 s", plan={"every_seconds": 90})
    chance = random.Random(1)
    fleet = [(open_storage(), skew) for skew in (-2.0, 0.0, 2.0)]
    made: list[tuple[str, datetime]] = []
    step_back = 0
    for second in range(1_200):
        if second in (300, 700):
            step_back += 90
        storage, skew = chance.choice(fleet)
        tick(storage, NOON + timedelta(seconds=second + skew - step_back))
        if second % 100 == 99:  # no retention at all, neither of jobs nor of ticks
            made += Job.objects.values_list("schedule", "tick")
            Job.objects.all().delete()
            Tick.objects.all().delete()
    minutely = [NOON + minutes(n) for n in range(1, 1_021 // 60 + 1)]
    others = [NOON + minutes(1.5 * n) for n in range(1, 1_021 // 90 + 1)]
    assert sorted(made) == [("every 90 s", t) for t in others] + [("minutely", t) for t in minutely]


def test_every_tick_is_made_once_while_clocks_step_back(open_storage) -> None:
    make("minutely", plan=MINUTELY)
    fleet = [open_storage() for _ in range(3)]
    counted: list[datetime] = []
    seconds = [*range(0, 200, 7), *range(110, 400, 7), *range(310, 600, 7)]
    for n, second in enumerate(seconds):
        tick(fleet[n % 3], NOON + timedelta(seconds=second))
        counted += [job.tick for job in jobs_of("minutely")]
        Job.objects.all().delete()
    assert counted == [NOON + minutes(n) for n in range(1, 10)]


def test_schedulers_at_the_same_time_make_one_job_a_tick(open_storage) -> None:
    make("minutely", plan=MINUTELY)
    make("other", plan=MINUTELY)
    fleet = [open_storage() for _ in range(3)]
    barrier = threading.Barrier(3)
    errors: list[BaseException] = []

    def run(storage: Storage) -> None:
        try:
            for n in range(1, 11):
                barrier.wait(30)
                tick(storage, NOON + minutes(n))
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(storage,)) for storage in fleet]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for name in ("minutely", "other"):
        assert ticks_of(name) == [f"03-01 12:{n:02}" for n in range(1, 11)]


# --- what a scheduler leaves behind that stops in the middle ----------------------------------


def test_a_scheduler_that_dies_before_its_commit_leaves_the_tick_to_another(
    storage: Storage, other: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    make()

    def die(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storage, "insert_ticks", die)
    with pytest.raises(KeyboardInterrupt):
        tick(storage, at("03-01 13:00"))
    assert (jobs_of(), Schedule.objects.get().last_tick) == ([], NOON)
    tick(other, at("03-01 13:00:05"))
    assert ticks_of() == ["03-01 13:00"]


@pytest.mark.postgres_only("SQLite has one write lock, which every writer waits for")
def test_a_scheduler_that_freezes_before_its_commit_stops_nobody(
    storage: Storage, other: Storage
) -> None:
    make()
    make("other")
    (_, rows) = storage.read_schedules(["default"], now=at("03-01 13:00"))
    frozen = next(row for row in rows if row.name == "report")

    def freeze() -> None:
        move = storage_schedules.Move(frozen.plan, at("03-01 13:00"), at("03-01 14:00"))
        assert storage.move_schedule(frozen, move)
        tick(other, at("03-01 13:00"))  # returns at once
        assert (ticks_of(), ticks_of("other")) == ([], ["03-01 13:00"])
        with storage.connection.cursor() as cursor:
            cursor.execute("SHOW idle_in_transaction_session_timeout")
            assert cursor.fetchone() == ("5s",)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        storage.in_one(freeze)
    tick(other, at("03-01 13:00:06"))
    assert ticks_of() == ["03-01 13:00"]


# --- missed ----------------------------------------


@pytest.mark.parametrize(
    ("plan", "policy", "now", "expected", "history"),
    [
        # Three hours without a scheduler.
        (MINUTELY, {}, "03-01 15:00:20", ["15:00"], ("enqueued", 100)),
        (HOURLY, {}, "03-01 15:00:20", ["15:00"], ("enqueued", 2)),
        (DAILY, {}, "03-02 07:30", ["06:00"], ("enqueued", 0)),
        (MINUTELY, {"missed": "skip"}, "03-01 15:00:20", ["15:00"], ("enqueued", 100)),
        (HOURLY, {"missed": "skip"}, "03-01 15:20", [], ("missed", 2)),
        (DAILY, {"missed": "skip"}, "03-02 07:30", [], ("missed", 0)),
        (HOURLY, {"missed": "all"}, "03-01 15:20", ["13:00", "14:00", "15:00"], None),
        (HOURLY, {"missed": "all", "missed_limit": 2}, "03-01 15:20", ["14:00", "15:00"], None),
        ({"every_seconds": 1}, {}, "03-02 12:00", ["12:00"], ("enqueued", 100)),
        ({"at": at("03-01 13:30")}, {}, "03-09 12:00", ["13:30"], ("enqueued", 0)),
        ({"at": at("03-01 13:30")}, {"missed": "skip"}, "03-09 12:00", [], ("missed", 0)),
    ],
)
def test_missed_ticks_are_settled_by_the_policy(
    storage: Storage, plan, policy, now, expected, history
) -> None:
    make(plan=plan, **policy)
    tick(storage, at(now))
    assert [text[-5:] for text in ticks_of()] == expected
    if history is not None:
        assert [row[1:] for row in history_of()] == [history]
    tick(storage, at(now), everything=True)
    assert len(jobs_of()) == len(expected)
    schedule = Schedule.objects.get()
    assert schedule.look_at > at(now)
    assert schedule.last_tick <= at(now)


def test_those_beyond_the_cap_are_counted(storage: Storage) -> None:
    make(plan=HOURLY, missed="all", missed_limit=2)
    tick(storage, at("03-01 16:00"))
    assert history_of() == [("03-01 15:00", "enqueued", 2), ("03-01 16:00", "enqueued", 0)]


# --- overlap ----------------------------------------


def end(job: Job) -> None:
    """End a job without running it."""
    Job.objects.filter(pk=job.pk).update(state="cancelled", reason="", finished_at=NOON)


def test_ticks_overlap_by_default(storage: Storage) -> None:
    make()
    for hour in (13, 14):
        tick(storage, at(f"03-01 {hour}:00"))
    assert [job.state for job in jobs_of()] == ["ready", "ready"]


@pytest.mark.parametrize("state", ["ready", "scheduled", "retrying", "running"])
def test_a_tick_is_skipped_while_an_earlier_job_lives(storage: Storage, state: str) -> None:
    make(overlap="skip")
    tick(storage, at("03-01 13:00"))
    owned = {"worker": jobs_of()[0].pk, "claimed_at": NOON, "deadline": NOON, "fence": 1}
    Job.objects.update(state=state, **(owned if state == "running" else {}))
    tick(storage, at("03-01 14:00"))
    assert history_of() == [("03-01 13:00", "enqueued", 0), ("03-01 14:00", "overlap", 0)]
    Job.objects.update(state="dead", finished_at=NOON, worker=None, claimed_at=None, deadline=None)
    tick(storage, at("03-01 15:00"))
    assert ticks_of() == ["03-01 13:00", "03-01 15:00"]


def test_missed_ticks_do_not_overlap_each_other(storage: Storage) -> None:
    make("skip", overlap="skip", missed="all")
    make("queue", overlap="queue", missed="all")
    tick(storage, at("03-01 15:30"))
    assert ticks_of("skip") == ["03-01 13:00"]
    assert [job.state for job in jobs_of("queue")] == ["ready", "blocked", "blocked"]


def test_a_queued_job_goes_on_once_all_before_it_have_ended(storage: Storage, other) -> None:
    make(overlap="queue")
    for hour in (13, 14, 15):
        tick(storage, at(f"03-01 {hour}:00"))
    assert [job.state for job in jobs_of()] == ["ready", "blocked", "blocked"]
    assert [job.reason for job in jobs_of()] == ["", "overlap", "overlap"]
    for n in range(2):
        end(jobs_of()[n])
        assert tick(storage, at("03-01 15:01")) == {"default"}
        assert tick(other, at("03-01 15:01")) == set()
        assert [job.state for job in jobs_of()][n + 1 :] == ["ready", "blocked"][: 2 - n]


def test_a_queued_job_that_is_put_off_waits_for_those_before_it_all_the_same(storage) -> None:
    make(overlap="queue")
    for hour in (13, 14):
        tick(storage, at(f"03-01 {hour}:00"))
    first, second = jobs_of()
    storage.reschedule_many([second.pk], [at("03-01 14:30")], 60.0, at("03-01 14:01"))
    assert tick(storage, at("03-01 14:02")) == set()
    storage.promote(10, at("03-01 14:31"))
    assert [(job.state, job.run_at) for job in jobs_of()][1:] == [("blocked", at("03-01 14:30"))]
    end(first)
    assert tick(storage, at("03-01 14:31")) == {"default"}
    assert jobs_of()[1].state == "ready"


def test_a_queue_of_waiting_jobs_is_bounded(storage: Storage, monkeypatch) -> None:
    from jobqueue.engine import schedule_jobs

    monkeypatch.setattr(schedule_jobs, "MOST_WAITING", 2)
    make(overlap="queue")
    for hour in (13, 14, 15, 16):
        tick(storage, at(f"03-01 {hour}:00"))
    assert len(jobs_of()) == 3
    assert history_of()[-1] == ("03-01 16:00", "crowded", 0)


def test_a_tick_whose_job_has_a_twin_makes_none(storage: Storage) -> None:
    make(task=unique_job.module_path, missed="all")
    tick(storage, at("03-01 14:00"))
    tick(storage, at("03-01 15:00"))
    assert ticks_of() == ["03-01 13:00"]
    assert [outcome for _, outcome, _ in history_of()] == ["enqueued", "twin", "twin"]
    assert not control.run_schedule("report", Actor("kim", "shell")).changed


# --- jitter, start and end ----------------------------------------


def test_jitter_delays_a_tick_always_by_the_same(storage: Storage) -> None:
    make(jitter_seconds=600)
    delays = []
    for n in range(1, 9):
        tick(storage, NOON + timedelta(hours=n))
    for job in jobs_of():
        delays.append((job.run_at - job.tick).total_seconds())
        assert job.state == ("scheduled" if job.run_at > job.enqueued_at else "ready")
    assert len(set(delays)) == 8
    assert all(0 <= delay <= 600 for delay in delays)
    (row,) = storage.read_schedules(["default"], everything=True)[1]
    again = ticking.policy_of(row).delay("report", at("03-01 13:00"))
    assert again.total_seconds() == delays[0]


def test_no_tick_is_before_the_start_or_after_the_end(storage: Storage) -> None:
    make(start_at=at("03-01 14:00"), end_at=at("03-01 15:00"))
    for n in range(1, 8):
        tick(storage, NOON + timedelta(hours=n), everything=True)
    assert ticks_of() == ["03-01 14:00", "03-01 15:00"]
    assert Schedule.objects.get().look_at.year == 9999


def test_a_time_fires_once(storage: Storage) -> None:
    make(plan={"at": at("03-01 13:30")})
    for n in range(6):
        tick(storage, NOON + minutes(30 * n), everything=True)
    assert ticks_of() == ["03-01 13:30"]


# --- being changed ----------------------------------------


CHANGES = {
    "save": lambda schedule: change(schedule, cron="30 * * * *").save(),
    "save of one field": lambda s: change(s, cron="30 * * * *").save(update_fields=["cron"]),
    "update": lambda schedule: Schedule.objects.update(cron="30 * * * *"),
    "zone": lambda schedule: change(schedule, time_zone="Asia/Kathmandu").save(),
    "enabled": lambda schedule: change(schedule, enabled=True).save(),
}


def change(schedule: Schedule, **columns: object) -> Schedule:
    for name, value in columns.items():
        setattr(schedule, name, value)
    return schedule


@pytest.mark.parametrize("how", CHANGES)
def test_a_change_never_fires_by_itself(storage: Storage, how: str) -> None:
    """Each would make what was missed since noon of a day in the past."""
    long_ago = datetime(2026, 1, 1, 12, tzinfo=UTC)
    schedule = make(since=long_ago)
    if how == "enabled":
        change(schedule, enabled=False).save()
    CHANGES[how](Schedule.objects.get())
    tick_now = storage.clock()
    tick(storage, tick_now, everything=True)
    assert jobs_of() == []
    schedule = Schedule.objects.get()
    assert schedule.last_tick > long_ago
    assert schedule.look_at > tick_now


def test_re_enabling_behind_our_back_does_not_fire_what_was_missed(storage: Storage) -> None:
    make()
    Schedule.objects.update(enabled=False)
    tick(storage, at("03-01 12:30"), everything=True)
    Schedule.objects.update(enabled=True)
    tick(storage, at("03-05 12:30"), everything=True)
    assert jobs_of() == []
    tick(storage, at("03-05 13:00"))
    assert ticks_of() == ["03-05 13:00"]


def test_a_row_inserted_by_sql_counts_from_when_it_is_seen(storage: Storage) -> None:
    Schedule.objects.bulk_create([Schedule(name="report", task="tests.app.tasks.record", **HOURLY)])
    tick(storage, at("03-01 12:30"))
    tick(storage, at("03-01 13:00"))
    assert ticks_of() == ["03-01 13:00"]


def test_a_change_does_not_move_the_last_tick_back(storage: Storage) -> None:
    schedule = make(since=at("03-01 12:00"))  # ahead of the database's clock
    change(schedule, cron="30 * * * *").save()
    assert Schedule.objects.get().last_tick == at("03-01 12:00")


def test_a_form_that_was_open_during_a_tick_does_not_set_it_back(storage: Storage) -> None:
    form = make()
    tick(storage, at("03-01 13:00"))
    change(form, overlap="skip", arguments={"args": ["changed"], "kwargs": {}}).save()
    assert Schedule.objects.get().last_tick == at("03-01 13:00")
    tick(storage, at("03-01 13:30"), everything=True)
    assert ticks_of() == ["03-01 13:00"]


def test_a_schedule_that_is_changed_between_look_and_tick_is_left_for_the_next_turn(
    storage: Storage, monkeypatch
) -> None:
    make()
    read = storage.read_schedules

    def read_what_changes(*args, **kwargs):
        found = read(*args, **kwargs)
        change(Schedule.objects.get(), arguments={"args": ["new"], "kwargs": {}}).save()
        return found

    monkeypatch.setattr(storage, "read_schedules", read_what_changes)
    tick(storage, at("03-01 13:00"))
    monkeypatch.undo()
    assert jobs_of() == []
    tick(storage, at("03-01 13:00:01"))
    assert jobs_of()[0].arguments["args"] == ["new"]


def test_a_disabled_schedule_does_not_tick(storage: Storage) -> None:
    change(make(), enabled=False).save()
    tick(storage, at("03-01 13:00"), everything=True)
    assert jobs_of() == []


# --- what is wrong ----------------------------------------


@pytest.fixture
def told():
    """The events about schedules that were emitted."""
    events = []
    stop = subscribe(lambda e: events.append(e) if e.name.startswith("schedule.") else None)
    yield events
    stop()


WRONG = {
    "never": {"cron": "0 0 31 2 *"},
    "malformed": {"cron": "*/0 * * * *"},
    "zone": {"time_zone": "Mars/Olympus"},
    "task": {"task": "tests.app.tasks.gone"},
    "foreign task": {"task": "os.system"},
    "arguments": {"arguments": {"args": [1, 2, 3], "kwargs": {}}},
    "no call": {"arguments": "nonsense"},
    "queue": {"queue_name": "nowhere"},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_bad_row_is_marked_once_and_holds_up_no_other(storage: Storage, told, what) -> None:
    make("bad")
    make("good")
    Schedule.objects.filter(name="bad").update(**WRONG[what])
    tick(storage, at("03-01 12:30"), everything=True)
    for second in range(0, 100, 10):
        tick(storage, at("03-01 13:00") + timedelta(seconds=second), everything=True)
    assert (ticks_of("bad"), ticks_of("good")) == ([], ["03-01 13:00"])
    bad = Schedule.objects.get(name="bad")
    assert bad.error
    assert bad.error_at
    assert [e.facts["schedule"] for e in told if e.name == "schedule.failed"] == ["bad"]
    mended = make("model")
    Schedule.objects.filter(name="bad").update(
        **{name: getattr(mended, name) for name in WRONG[what]}
    )
    tick(storage, at("03-01 13:30"), everything=True)
    assert Schedule.objects.get(name="bad").error == ""
    tick(storage, at("03-01 14:00"))
    assert ticks_of("bad") == ["03-01 13:00", "03-01 14:00"]  # the first was missed


def test_a_schedule_that_ticks_again_says_so(storage: Storage, told) -> None:
    make()
    Schedule.objects.update(task="tests.app.tasks.gone")
    tick(storage, at("03-01 13:00"))
    Schedule.objects.update(task="tests.app.tasks.record")
    tick(storage, at("03-01 13:05"))
    assert [event.name for event in told] == [
        "schedule.failed",
        "schedule.ticked",
        "schedule.recovered",
    ]


@pytest.mark.sqlite_only("PostgreSQL takes nothing but times into a column of times")
@pytest.mark.parametrize("text", ["soon", "2026-13-45 25:00:00"])
def test_what_is_no_time_holds_up_no_other(storage: Storage, text: str) -> None:
    make("bad")
    make("good")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = on")
        cursor.execute("UPDATE jobqueue_schedule SET start_at = %s WHERE name = 'bad'", [text])
        cursor.execute("PRAGMA ignore_check_constraints = off")
    tick(storage, at("03-01 13:00"))
    assert (ticks_of("bad"), ticks_of("good")) == ([], ["03-01 13:00"])
    with connection.cursor() as cursor:
        cursor.execute("SELECT error FROM jobqueue_schedule WHERE name = 'bad'")
        assert text in cursor.fetchone()[0]


def test_a_schedule_declared_in_code_ticks_only_where_the_code_declares_it(
    storage: Storage, other: Storage
) -> None:
    make(source="code")
    tick(storage, at("03-01 13:00"), everything=True)
    assert jobs_of() == []
    tick(other, at("03-01 13:00:01"), declared=("report",))
    assert ticks_of() == ["03-01 13:00"]


def test_the_history_of_ticks_is_bounded(storage: Storage, monkeypatch) -> None:
    for module in ("postgres_schedules", "sqlite_schedules"):
        monkeypatch.setattr(f"jobqueue.storage.{module}.TICKS_KEPT", 3)
    make()
    for n in range(1, 6):
        tick(storage, NOON + timedelta(hours=n))
    assert [row[0] for row in history_of()] == ["03-01 15:00", "03-01 16:00", "03-01 17:00"]
    assert len(jobs_of()) == 5


@pytest.mark.parametrize(
    "now", [datetime(9999, 12, 31, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)]
)
def test_the_ends_of_time_are_no_error(storage: Storage, now: datetime) -> None:
    make("cron", since=NOON, plan=HOURLY)
    make("interval", since=NOON, plan={"every_seconds": 60})
    tick(storage, now, everything=True)
    tick(storage, now, everything=True)
    assert set(Schedule.objects.values_list("error", flat=True)) == {""}


def test_the_signal_of_the_framework_is_sent(storage: Storage) -> None:
    from jobqueue.compat import task_enqueued

    sent = []

    def receiver(sender, task_result, **kwargs):
        sent.append(task_result)

    task_enqueued.connect(receiver)
    try:
        make()
        tick(storage, at("03-01 13:00"))
    finally:
        task_enqueued.disconnect(receiver)
    assert [result.id for result in sent] == [str(jobs_of()[0].pk)]
    assert sent[0].task.module_path == "tests.app.tasks.record"
