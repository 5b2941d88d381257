"""Schedules declared in code: their rows follow the code, and only the code's own tick."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now

from jobqueue import control, schedule
from jobqueue.control import Actor
from jobqueue.engine import aliases, declared
from jobqueue.engine.aliases import aliases_of
from jobqueue.engine.declared import declarations, is_declared, sync
from jobqueue.engine.ticking import tick_schedules
from jobqueue.events import subscribe
from jobqueue.exceptions import InvalidSchedule
from jobqueue.models import Job, Schedule
from tests.app.tasks import record
from tests.storage.conftest import open_storage, storage

__all__ = ["open_storage", "storage"]

REPORT = {"task": "tests.app.tasks.record", "cron": "0 6 * * *"}
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def nothing_beside_tasks(monkeypatch):
    monkeypatch.setattr(declared, "_declared", {})
    monkeypatch.setattr(declared, "_told", set())
    monkeypatch.setattr(aliases, "_told", set())


@pytest.fixture
def declare(settings):
    """Sets the option SCHEDULES, as another version of the code has it."""

    def declare_in_settings(**schedules):
        settings.TASKS = {
            "default": {**settings.TASKS["default"], "OPTIONS": {"SCHEDULES": schedules}}
        }

    return declare_in_settings


def test_a_declared_schedule_gets_its_row_once(declare):
    declare(report=REPORT, ping={"task": record.module_path, "every": timedelta(minutes=5)})
    assert sync("default") == ["report", "ping"]
    assert sync("default") == []
    rows = Schedule.objects.in_bulk(field_name="name")
    assert (rows["report"].cron, rows["report"].source) == ("0 6 * * *", "code")
    assert rows["ping"].every_seconds == 300
    assert rows["report"].last_tick is not None


def test_a_schedule_is_declared_beside_its_task(declare):
    schedule("beside", record, cron="@hourly", args=["x"], time_zone="Europe/Paris")
    schedule("by path", record.module_path, every=60)
    declare(report=REPORT)
    assert set(sync("default")) == {"beside", "by path", "report"}
    row = Schedule.objects.get(name="beside")
    assert (row.task, row.arguments["args"]) == (record.module_path, ["x"])


def test_a_declaration_that_cannot_be_is_refused_where_it_stands():
    with pytest.raises(InvalidSchedule, match="cron"):
        schedule("bad", record, cron="0 0 31 2 *")


def test_a_changed_declaration_counts_from_now(declare, storage):
    declare(report=REPORT)
    sync("default")
    Schedule.objects.update(last_tick=LONG_AGO)
    declare(report={**REPORT, "overlap": "skip"})
    assert sync("default") == ["report"]
    assert Schedule.objects.get().last_tick == LONG_AGO  # the plan is the same
    declare(report={**REPORT, "cron": "0 7 * * *"})
    assert sync("default") == ["report"]
    assert Schedule.objects.get().last_tick > LONG_AGO
    tick_schedules(storage, ["default"], is_declared, everything=True)
    assert Job.objects.count() == 0


def test_what_an_operator_has_disabled_stays_disabled(declare):
    declare(report=REPORT)
    sync("default")
    control.disable_schedule("report", Actor("kim", "shell"))
    declare(report={**REPORT, "cron": "0 7 * * *"})
    sync("default")
    assert Schedule.objects.get().enabled is False


def test_one_that_leaves_the_code_keeps_its_row_and_ticks_no_more(declare, storage):
    declare(report=REPORT)
    sync("default")
    Schedule.objects.update(last_tick=LONG_AGO)
    declare()
    sync("default")
    tick_schedules(storage, ["default"], is_declared, everything=True)
    row = Schedule.objects.get()
    assert row.undeclared_at is not None
    assert Job.objects.count() == 0
    assert [one.state for one in control.schedules()] == ["undeclared"]


def test_one_that_old_code_does_not_know_goes_on_where_new_code_runs(declare, storage):
    declare(report=REPORT)
    sync("default")
    Schedule.objects.update(last_tick=LONG_AGO)
    declare()
    sync("default")  # a process of the old version starts in the middle of a deploy
    declare(report=REPORT)
    tick_schedules(storage, ["default"], is_declared)
    assert Job.objects.count() == 1
    assert sync("default") == ["report"]
    assert Schedule.objects.get().undeclared_at is None


@pytest.mark.parametrize(("absent", "jobs"), [(timedelta(minutes=1), 1), (timedelta(days=30), 0)])
def test_one_that_comes_back_counts_from_then_unless_it_was_a_deploy(
    declare, storage, absent, jobs
):
    declare(report=REPORT)
    sync("default")
    Schedule.objects.update(last_tick=LONG_AGO, undeclared_at=Now() - absent)
    sync("default")
    tick_schedules(storage, ["default"], is_declared, everything=True)
    assert Job.objects.count() == jobs


def test_one_that_is_switched_off_in_code_is_as_if_it_were_not_there(declare):
    declare(report=REPORT)
    sync("default")
    declare(report={**REPORT, "enabled": False})
    sync("default")
    assert declarations("default") == {}
    assert Schedule.objects.get().undeclared_at is not None


def test_the_code_takes_over_a_name_that_an_operator_gave(declare):
    control.create_schedule("report", Actor("kim", "shell"), task=record.module_path, every=60)
    declare(report=REPORT)
    assert sync("default") == ["report"]
    row = Schedule.objects.get()
    assert (row.source, row.cron, row.every_seconds) == ("code", "0 6 * * *", None)


def test_arguments_that_cannot_travel_are_told_once_and_hold_up_no_other():
    told = []
    stop = subscribe(lambda event: told.append(event.name))
    schedule("bad", record, every=60, args=[object()])
    schedule("good", record, every=60)
    assert sync("default") == ["good"]
    assert sync("default") == []
    stop()
    assert told.count("schedule.refused") == 1


def test_several_schedulers_that_start_together_make_one_row(declare, monkeypatch):
    declare(report=REPORT)
    rows = Schedule.objects.using("default").filter(name__in=["report"])
    list(rows)
    real = declared._write

    def write_after_another(*args):
        monkeypatch.setattr(declared, "_write", real)
        assert sync("default") == ["report"]
        return real(*args)

    monkeypatch.setattr(declared, "_write", write_after_another)
    assert sync("default") == []
    assert Schedule.objects.count() == 1


def test_aliases_of_one_database_have_their_own_schedules(settings, storage):
    base = settings.TASKS["default"]
    settings.TASKS = {
        "default": {**base, "OPTIONS": {"SCHEDULES": {"one": REPORT}}},
        "slow": {**base, "OPTIONS": {"SCHEDULES": {"two": REPORT}, "TIMEOUT": 7}},
        "elsewhere": {**base, "OPTIONS": {"DATABASE": "other"}},
    }
    assert aliases_of("default") == ["default", "slow"]
    for alias in aliases_of("default"):
        sync(alias)
    assert set(Schedule.objects.values_list("name", "backend", "undeclared_at")) == {
        ("one", "default", None),
        ("two", "slow", None),
    }
    Schedule.objects.update(last_tick=LONG_AGO)
    tick_schedules(storage, ["default", "slow"], is_declared)
    jobs = dict(Job.objects.values_list("schedule", "timeout"))
    assert jobs == {"one": 1_800.0, "two": 7.0}


def test_an_alias_whose_options_are_wrong_is_told_of_once_and_stops_no_other(settings):
    base = settings.TASKS["default"]
    settings.TASKS = {
        "broken": {**base, "OPTIONS": {"TIMEOUT": "soon"}},
        "default": {**base, "OPTIONS": {"SCHEDULES": {"one": REPORT}}},
    }
    told = []
    stop = subscribe(told.append)
    try:
        assert aliases_of("default") == aliases_of("default") == ["default"]
    finally:
        stop()
    (event,) = [event for event in told if event.name == "alias.refused"]
    assert event.facts["alias"] == "broken"
    assert "TIMEOUT" in event.facts["error"]
