"""Schedules in the hands of operators: nothing fires by itself, and everything is recorded."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, transaction

from jobqueue import control
from jobqueue.engine.registry import registry
from jobqueue.exceptions import (
    DeclaredInCode,
    InvalidSchedule,
    RowLocked,
    ScheduleChanged,
    ScheduleNotFound,
    TaskNotExposed,
)
from jobqueue.models import Action, Job, Schedule, Tick
from tests.app.tasks import record
from tests.engine.timetable import HOURLY, at, jobs_of, make, tick
from tests.tasks.samples import add

TASK = "tests.app.tasks.record"


def create(actor, name="report", **given):
    return control.create_schedule(name, actor, **{"task": TASK, "cron": "0 6 * * *", **given})


def verbs() -> list[tuple[str, str]]:
    return list(Action.objects.order_by("id").values_list("verb", "target"))


# --- making and changing ----------------------------------------


def test_a_schedule_is_made_with_its_action_and_no_job(storage, actor):
    before = storage.clock()
    made = create(
        actor,
        args=["x"],
        queue_name="mail",
        priority=5,
        time_zone="Europe/Paris",
        overlap="skip",
        missed="all",
        missed_limit=3,
        jitter=timedelta(minutes=2),
        start="2027-01-01T00:00",
    )
    row = Schedule.objects.get()
    assert row == made
    assert (row.cron, row.time_zone, row.queue_name, row.priority) == (
        "0 6 * * *",
        "Europe/Paris",
        "mail",
        5,
    )
    assert row.arguments == {"args": ["x"], "kwargs": {}}
    assert row.start_at == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert row.jitter_seconds == 120
    assert row.last_tick >= before
    assert verbs() == [("create_schedule", "report")]
    tick(storage, storage.clock(), everything=True)
    assert Job.objects.count() == 0


@pytest.mark.parametrize(
    ("given", "keyword"),
    [
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"cron": "*/0 * * * *"}, "cron"),
        ({"cron": "0 0 * * * *"}, "cron"),
        ({"cron": ""}, "cron"),
        ({"every": 60}, "cron"),
        ({"cron": None, "every": 0}, "every"),
        ({"cron": None, "every": 1.5}, "every"),
        ({"cron": None, "every": timedelta.max}, "every"),
        ({"cron": None, "every": "1h"}, "every"),
        ({"cron": None, "at": "soon"}, "at"),
        ({"cron": None, "at": datetime.max}, "at"),  # noqa: DTZ901
        ({"cron": None, "at": datetime(1, 1, 1)}, "at"),  # noqa: DTZ001
        ({"cron": None, "at": "1960-01-01"}, "at"),
        ({"cron": None, "at": "2030-01-01", "end": "2029-01-01"}, "at"),
        ({"start": "2030-01-02", "end": "2030-01-01"}, "end"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"jitter": -1}, "jitter"),
        ({"jitter": 1e12}, "jitter"),
        ({"missed": "never"}, "missed"),
        ({"missed_limit": 0}, "missed_limit"),
        ({"overlap": "wait"}, "overlap"),
        ({"task": "tests.app.tasks.gone"}, "task"),
        ({"task": "os.system"}, "task"),
        ({"task": 5}, "task"),
        ({"args": [1, 2, 3]}, "args"),
        ({"args": [object()]}, "args"),
        ({"args": "text"}, "args"),
        ({"kwargs": {"nonsense": 1}}, "args"),
        ({"queue_name": "nowhere"}, "queue_name"),
        ({"priority": 101}, "priority"),
        ({"enabled": "yes"}, "enabled"),
        ({"crom": "0 6 * * *"}, "crom"),
    ],
)
def test_what_could_not_tick_is_refused_with_a_reason_for_the_keyword(actor, given, keyword):
    with pytest.raises(InvalidSchedule) as caught:
        create(actor, **given)
    assert list(caught.value.errors) == [keyword]
    assert Schedule.objects.count() == Action.objects.count() == 0


@pytest.mark.parametrize(
    ("given", "keyword"),
    [({"cron": None, "at": "2020-01-01"}, "at"), ({"end": "2020-01-01"}, "end")],
)
def test_what_has_passed_already_is_refused(actor, given, keyword):
    with pytest.raises(InvalidSchedule, match="has passed") as caught:
        create(actor, **given)
    assert list(caught.value.errors) == [keyword]
    create(actor)
    with pytest.raises(InvalidSchedule, match="has passed"):
        control.update_schedule("report", actor, **given)


@pytest.mark.parametrize(
    ("surface", "expose"), [("admin", "staff"), ("page", "staff"), ("api", "api")]
)
def test_only_tasks_that_are_offered_on_a_surface_are_scheduled_there(
    actor, monkeypatch, surface, expose
):
    somebody = control.Actor("kim", surface)
    for exposed in (frozenset(), {"staff", "api"} - {expose}):
        monkeypatch.setattr(registry, "_tasks", {TASK: record.as_recorded(expose=exposed)})
        with pytest.raises(TaskNotExposed):
            create(somebody)
    create(actor)
    with pytest.raises(TaskNotExposed):
        control.update_schedule("report", somebody, cron="0 7 * * *")
    assert control.run_schedule("report", somebody).changed
    monkeypatch.setattr(registry, "_tasks", {TASK: record.as_recorded(expose=frozenset({expose}))})
    create(somebody, "another")


@pytest.mark.parametrize("name", ["", " a", "a\nb", "a\x00b", "x" * 129, 7])
def test_a_name_is_printable_text(actor, name):
    with pytest.raises(InvalidSchedule, match="name"):
        create(actor, name)


def test_a_name_is_given_once(actor):
    create(actor)
    with pytest.raises(InvalidSchedule, match="taken"):
        create(actor)
    assert Schedule.objects.count() == 1


def test_a_change_counts_from_now_and_keeps_the_rest(storage, actor):
    create(actor, time_zone="Europe/Paris", args=["kept"])
    Schedule.objects.update(last_tick=datetime(2026, 1, 1, tzinfo=UTC))
    before = storage.clock()
    changed = control.update_schedule("report", actor, every=900)
    assert (changed.cron, changed.every_seconds, changed.time_zone) == ("", 900, "Europe/Paris")
    row = Schedule.objects.get()
    assert row.arguments["args"] == ["kept"]
    assert row.last_tick >= before
    assert row.version == 2
    assert Action.objects.last().detail == {"fields": ["cron", "every_seconds"]}
    assert control.update_schedule("report", actor, every=900).version == 2
    assert len(verbs()) == 2


def test_a_refused_change_changes_nothing(actor):
    create(actor)
    with pytest.raises(InvalidSchedule):
        control.update_schedule("report", actor, cron="0 0 31 4 *")
    assert Schedule.objects.get().cron == "0 6 * * *"


def test_a_change_to_another_version_is_refused(actor):
    create(actor)
    control.update_schedule("report", actor, overlap="skip", version=1)
    with pytest.raises(ScheduleChanged, match="version 2, not 1"):
        control.update_schedule("report", actor, overlap="allow", version=1)


def test_a_schedule_of_the_code_is_not_changed_here(actor):
    make(source="code")
    with pytest.raises(DeclaredInCode):
        control.update_schedule("report", actor, cron="0 7 * * *")
    with pytest.raises(DeclaredInCode):
        control.delete_schedule("report", actor)
    assert str(control.disable_schedule("report", actor, "broken")) == "1 disabled"


def test_what_is_not_there_is_said(actor):
    for do in (control.enable_schedule, control.disable_schedule, control.run_schedule,
               control.delete_schedule, control.update_schedule):  # fmt: skip
        with pytest.raises(ScheduleNotFound, match="'nope'"):
            do("nope", actor)


@pytest.mark.postgres_only("SQLite has no row locks")
def test_a_row_that_a_scheduler_holds_is_not_waited_for(storage, actor):
    make()
    (row,) = storage.read_schedules(["default"], everything=True)[1]

    def hold():
        assert storage.move_schedule(row, move_of(row))
        with pytest.raises(RowLocked):
            control.disable_schedule("report", actor)

    storage.in_one(hold)
    assert Schedule.objects.get().enabled


def move_of(row):
    from jobqueue.storage.schedules import Move

    return Move(row.plan, row.last_tick, row.look_at)


# --- enabling ----------------------------------------


def test_enabling_again_fires_nothing_that_was_missed(storage, actor):
    make(since=datetime(2026, 1, 1, tzinfo=UTC), plan=HOURLY)
    assert str(control.disable_schedule("report", actor, "holidays")) == "1 disabled"
    assert str(control.disable_schedule("report", actor)) == "1 skipped: already disabled"
    assert str(control.enable_schedule("report", actor)) == "1 enabled"
    now = storage.clock()
    tick(storage, now, everything=True)
    assert jobs_of() == []
    assert [verb for verb, _ in verbs()] == ["disable_schedule", "enable_schedule"]
    assert Action.objects.first().detail == {"reason": "holidays"}


def test_one_that_cannot_tick_can_be_disabled_but_not_enabled(actor):
    make()
    Schedule.objects.update(cron="0 0 31 2 *")
    assert str(control.disable_schedule("report", actor)) == "1 disabled"
    with pytest.raises(InvalidSchedule):
        control.enable_schedule("report", actor)


def test_deleting_leaves_the_jobs(storage, actor):
    make()
    tick(storage, at("03-01 13:00"))
    assert str(control.delete_schedule("report", actor)) == "1 deleted"
    assert (Schedule.objects.count(), Tick.objects.count(), Job.objects.count()) == (0, 0, 1)
    assert verbs() == [("delete_schedule", "report")]


def test_one_that_has_left_the_code_can_be_deleted(actor):
    make(source="code")
    Schedule.objects.update(undeclared_at=at("03-01 12:00"))
    assert str(control.delete_schedule("report", actor)) == "1 deleted"


# --- run now ----------------------------------------


def test_run_now_makes_a_job_without_a_tick(storage, actor):
    make(enabled=False, queue_name="mail", priority=7, arguments={"args": ["x"], "kwargs": {}})
    last_tick = Schedule.objects.get().last_tick
    outcome = control.run_schedule("report", actor)
    (job,) = jobs_of()
    assert outcome.results == {job.pk: "started"}
    assert (job.queue, job.priority, job.tick, job.created_by) == ("mail", 7, None, "kim")
    assert job.arguments["args"] == ["x"]
    assert Schedule.objects.get().last_tick == last_tick
    action = Action.objects.get()
    assert (action.verb, action.target, action.job_id) == ("run_schedule", "report", job.pk)


@pytest.mark.parametrize(
    ("overlap", "states"),
    [("allow", ["ready", "ready"]), ("skip", ["ready"]), ("queue", ["blocked", "ready"])],
)
def test_run_now_obeys_the_overlap_policy(actor, overlap, states):
    make(overlap=overlap)
    control.run_schedule("report", actor)
    second = control.run_schedule("report", actor)
    assert sorted(job.state for job in jobs_of()) == states
    assert second.changed == len(states) - 1
    assert len(verbs()) == len(states)


def test_run_now_says_what_is_wrong(actor):
    make()
    Schedule.objects.update(task="tests.app.tasks.gone")
    with pytest.raises(InvalidSchedule, match="gone"):
        control.run_schedule("report", actor)
    assert Job.objects.count() == Action.objects.count() == 0


# --- looking ahead ----------------------------------------


def test_the_preview_tells_ticks_in_both_clocks_and_what_is_odd(actor):
    made = create(actor, cron="30 2 * * *", time_zone="Europe/Paris")
    after = datetime(2027, 3, 27, 12, tzinfo=UTC)
    gap, plain = control.preview_schedule(made, 2, after=after)
    assert gap.at == datetime(2027, 3, 28, 1, tzinfo=UTC)
    assert (gap.local.hour, gap.local.minute) == (3, 0)
    assert "skips" in gap.note
    assert plain.note == ""
    (twice,) = control.preview_schedule(made, 1, after=datetime(2027, 10, 30, 12, tzinfo=UTC))
    assert "the first" in twice.note


def test_the_preview_of_an_unsaved_or_declared_schedule_is_the_same(actor):
    made = create(actor)
    unsaved = Schedule(name="x", task=TASK, cron="0 6 * * *")
    assert control.preview_schedule(unsaved) == control.preview_schedule(made)
    assert len(control.preview_schedule(made)) == 5
    with pytest.raises(InvalidSchedule):
        control.preview_schedule(Schedule(name="x", task=TASK, cron="0 0 30 2 *"))


def test_the_preview_tells_the_ticks_that_come(storage):
    schedule = make(plan={"cron": "*/20 * * * *"}, missed="all")
    told = [one.at for one in control.preview_schedule(schedule, 6)]
    tick(storage, at("03-01 14:00"))
    assert [job.tick for job in jobs_of()] == told


def test_the_overview_says_how_each_schedule_is(storage, actor):
    make("ticking")
    make("disabled", enabled=False)
    make("over", plan={"at": at("03-01 11:00")})
    make("gone", source="code")
    Schedule.objects.filter(name="gone").update(undeclared_at=at("03-01 12:00"))
    make("failing")
    Schedule.objects.filter(name="failing").update(cron="0 0 31 2 *", error="x")
    tick(storage, at("03-01 13:00"))
    found = {one.schedule.name: one for one in control.schedules()}
    assert {name: one.state for name, one in found.items()} == {
        name: "undeclared" if name == "gone" else name for name in found
    }
    last = found["ticking"].last
    assert (last.tick, last.outcome, last.job_state) == (at("03-01 13:00"), "enqueued", "ready")
    assert found["ticking"].next_ticks[0].at == at("03-01 14:00")
    assert found["ticking"].words == "At the start of every hour"


def test_status_tells_schedules_that_nobody_ticks_and_those_that_cannot(storage):
    for name in ("late", "on time", "disabled", "gone", "failing"):
        make(name)
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    Schedule.objects.exclude(name="on time").update(look_at=long_ago)
    Schedule.objects.filter(name="disabled").update(enabled=False)
    Schedule.objects.filter(name="gone").update(source="code", undeclared_at=long_ago)
    Schedule.objects.filter(name="failing").update(error="its task is gone")
    current = control.status()
    assert current.late_schedules == ["late"]
    assert current.failing_schedules == {"failing": "its task is gone"}
    Schedule.objects.filter(name="on time").update(look_at=None, last_tick=long_ago)
    assert control.status().late_schedules == ["late", "on time"]
    late = [one.schedule.name for one in control.schedules() if one.is_late]
    assert late == ["late", "on time"]


# --- rows that others write ----------------------------------------


def test_a_form_refuses_by_field():
    schedule = Schedule(name="x", task=TASK, cron="0 0 30 2 *", missed="never")
    with pytest.raises(ValidationError) as caught:
        schedule.full_clean()
    assert {"cron", "missed"} <= set(caught.value.message_dict)
    with pytest.raises(InvalidSchedule):
        schedule.save()


def test_a_form_can_ask_whether_a_schedule_could_make_a_job():
    control.check_schedule(Schedule(name="x", task=TASK, **HOURLY))
    arguments = {"args": [], "kwargs": {}}
    with pytest.raises(InvalidSchedule) as caught:
        control.check_schedule(
            Schedule(name="x", task=add.module_path, arguments=arguments, **HOURLY)
        )
    assert list(caught.value.errors) == ["arguments"]


@pytest.mark.parametrize(
    "columns",
    [
        {"cron": ""},
        {"every_seconds": 60},
        {"cron": "", "every_seconds": 0},
        {"cron": "", "at": datetime(1960, 1, 1, tzinfo=UTC)},
        {"start_at": at("03-02 12:00"), "end_at": at("03-01 12:00")},
        {"jitter_seconds": -1},
        {"missed": "never"},
        {"missed_limit": 1_001},
        {"overlap": "wait"},
        {"priority": -101},
        {"time_zone": ""},
        {"source": "nowhere"},
        {"name": ""},
    ],
)
def test_the_table_refuses_what_cannot_be(columns):
    row = Schedule(**{"name": "x", "task": TASK, **HOURLY, **columns})
    with pytest.raises(DatabaseError), transaction.atomic():
        Schedule.objects.bulk_create([row])
