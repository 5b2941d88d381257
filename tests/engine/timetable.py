"""Schedules for tests that move the clock: made long before, ticked at any time."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from jobqueue import task
from jobqueue.engine.ticking import tick_schedules
from jobqueue.models import Job, Schedule, Tick
from jobqueue.storage import Storage

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
TASK = "tests.app.tasks.record"
MINUTELY, HOURLY, DAILY = {"cron": "* * * * *"}, {"cron": "0 * * * *"}, {"cron": "0 6 * * *"}


@task(unique=True)
def unique_job(*args: Any) -> None:
    """A job that waits alone."""


def at(text: str) -> datetime:
    """Return a time of 2027, such as "03-01 12:30"."""
    return datetime.fromisoformat(f"2027-{text}+00:00")


def make(
    name: str = "report", since: datetime = NOON, plan: Mapping[str, Any] = HOURLY, **columns: Any
) -> Schedule:
    """Make a schedule whose ticks up to `since` are settled."""
    made = Schedule(**{"name": name, "task": TASK, **plan, **columns})
    made.save()
    Schedule.objects.filter(pk=made.pk).update(last_tick=since)
    return Schedule.objects.get(pk=made.pk)


def tick(
    storage: Storage, now: datetime, *, declared: tuple[str, ...] = (), everything: bool = False
) -> set[str]:
    """Let a scheduler look at all schedules at a time; return the queues that got a job."""
    return tick_schedules(
        storage,
        ["default"],
        lambda alias, name: name in declared,
        everything=everything,
        now=now,
    )


def jobs_of(name: str = "report") -> list[Job]:
    """Return the jobs of a schedule, the first made first."""
    return list(Job.objects.filter(schedule=name).order_by("enqueued_at", "id"))


def ticks_of(name: str = "report") -> list[str]:
    """Return the instants that the jobs of a schedule stand for, as times of 2027."""
    return [f"{job.tick:%m-%d %H:%M}" for job in jobs_of(name)]


def history_of(name: str = "report") -> list[tuple[str, str, int]]:
    """Return what was written down about the ticks of a schedule."""
    rows = Tick.objects.filter(schedule__name=name).order_by("tick")
    return [(f"{row.tick:%m-%d %H:%M}", row.outcome, row.missed) for row in rows]


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)
