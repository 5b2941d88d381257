"""``jobs schedules``: what is shown, and what is done."""

from datetime import UTC, datetime

import pytest

from jobqueue.models import Action, Job, Schedule
from tests.engine.timetable import at, make, tick


@pytest.fixture
def hourly(storage):
    make("hourly")
    tick(storage, at("03-01 13:00"))
    return "hourly"


def test_nothing_is_said_to_be_nothing(jobs):
    assert "no schedule" in jobs("schedules").out
    assert jobs("schedules", "--json").json == {"schedules": [], "declared": []}


def test_what_no_scheduler_has_taken_over_is_named(jobs, settings, hourly):
    plans = {
        name: {"task": "tests.app.tasks.record", "cron": "0 6 * * *"}
        for name in ("hourly", "nightly")
    }
    tasks = settings.TASKS["default"]
    options = {**tasks.get("OPTIONS", {}), "SCHEDULES": plans}
    settings.TASKS = {"default": {**tasks, "OPTIONS": options}}
    table, declared = jobs("schedules").out.split("Declared, not yet taken over")
    assert "hourly" in table
    assert "  nightly  At 06:00 every day, tests.app.tasks.record" in declared
    (only,) = jobs("schedules", "--json").json["declared"]
    assert only == {"name": "nightly", "task": "tests.app.tasks.record"}


def test_a_broken_module_with_tasks_hides_no_schedule(jobs, settings, hourly):
    tasks = settings.TASKS["default"]
    options = {**tasks.get("OPTIONS", {}), "IMPORTS": ["tests.no_such_module"]}
    settings.TASKS = {"default": {**tasks, "OPTIONS": options}}
    ran = jobs("schedules")
    assert "hourly" in ran.out
    assert "tests.no_such_module" in ran.err


def test_the_list_says_when_each_ticks(jobs, hourly):
    make("broken")
    Schedule.objects.filter(name="broken").update(cron="0 0 31 2 *", error="never matches")
    out = jobs("schedules").out
    assert "At the start of every hour" in out
    assert "2027-03-01 14:00:00+0000" in out
    assert "2027-03-01 13:00:00+00:00 ready" in out
    assert "failing" in out


def test_one_that_nobody_ticks_is_late(jobs, hourly):
    Schedule.objects.update(look_at=datetime(2026, 1, 1, tzinfo=UTC))
    for words in (["schedules"], ["schedules", "show", hourly]):
        out = jobs(*words).out
        assert "late" in out
        assert "ticking" not in out


def test_one_is_shown_with_its_next_and_last_ticks(jobs, hourly):
    out = jobs("schedules", "show", hourly, "--count", 3).out
    for hour in (14, 15, 16):
        assert f"2027-03-01 {hour}:00:00+0000" in out
    assert "17:00:00" not in out
    assert str(Job.objects.get().pk) in out


def test_programs_read_json(jobs, hourly):
    (document,) = jobs("schedules", "--json").json["schedules"]
    assert (document["name"], document["state"], document["cron"]) == (
        "hourly",
        "ticking",
        "0 * * * *",
    )
    assert len(document["next_ticks"]) == 5
    assert document["last"]["job_state"] == "ready"
    assert jobs("schedules", "show", hourly, "--json", "--count", 1).json["name"] == hourly


def test_one_is_disabled_enabled_run_and_deleted(jobs, hourly):
    assert "1 disabled" in jobs("schedules", "disable", hourly, "--reason", "too loud").out
    assert "too loud" in jobs("schedules", "show", hourly).out
    assert "already disabled" in str(jobs("schedules", "disable", hourly).error)
    assert "1 enabled" in jobs("schedules", "enable", hourly).out
    ran = jobs("schedules", "run", hourly)
    assert "1 started" in ran.out
    assert str(Job.objects.order_by("id").last().pk) in ran.out
    assert "1 deleted" in jobs("schedules", "delete", hourly).out
    assert Schedule.objects.count() == 0
    assert list(Action.objects.order_by("id").values_list("verb", flat=True)) == [
        "disable_schedule",
        "enable_schedule",
        "run_schedule",
        "delete_schedule",
    ]


def test_the_past_tick_of_a_pruned_job_is_still_told(jobs, hourly):
    Job.objects.all().delete()
    assert "13:00:00+00:00 pruned" in jobs("schedules").out


@pytest.mark.parametrize("action", ["show", "enable", "disable", "run", "delete"])
def test_a_name_is_needed_and_must_exist(jobs, action):
    assert f"jobs schedules {action} NAME" in str(jobs("schedules", action).error)
    assert "no schedule 'nope'" in str(jobs("schedules", action, "nope").error)


def test_a_job_tells_its_schedule(jobs, hourly):
    out = jobs("show", Job.objects.get().pk).out
    assert "hourly, tick 2027-03-01 13:00:00+00:00" in out
