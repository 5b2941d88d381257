"""How schedules are: what they do next, what came of their last tick, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import AUDIT_PATIENCE_SECONDS, options_for
from jobqueue.engine.schedules import PREVIEWED, preview_schedule
from jobqueue.exceptions import InvalidSchedule
from jobqueue.models import Job, Schedule, Tick
from jobqueue.models.schedule import CODE
from jobqueue.plan import PlannedTick

MAX_LISTED = 1_000
"""Schedules in one list."""
HISTORY = 20
"""Last ticks that a page about one schedule shows."""


@dataclass(frozen=True, slots=True)
class PastTick:
    """A tick that has come; job_state is None without a job, and once it has been pruned."""

    tick: datetime
    at: datetime
    outcome: str
    missed: int
    job_id: Any
    job_state: str | None


@dataclass(frozen=True, slots=True)
class ScheduleStatus:
    """A schedule as it is now.

    state: ticking; over (no tick is left); disabled; failing (see its error); or undeclared (the
    code that declared it does so no more, so it does not tick). is_late: it is due, and nobody
    ticks it. words: its plan in English.
    """

    schedule: Schedule
    state: str
    words: str
    next_ticks: list[PlannedTick]
    last: PastTick | None
    is_late: bool = False


def schedules(
    backend: str = DEFAULT_TASK_BACKEND_ALIAS, *, name: str | None = None, count: int = PREVIEWED
) -> list[ScheduleStatus]:
    """Return the schedules of an alias's database, by name, each with its next `count` ticks."""
    database = options_for(backend).database
    rows = Schedule.objects.using(database).order_by("name")
    if name is not None:
        rows = rows.filter(name=name)
    found = list(rows[:MAX_LISTED])
    last = _last_ticks(database, found)
    late_ids = set(_late(database).values_list("pk", flat=True))
    return [_status(row, last.get(row.pk), count, backend, row.pk in late_ids) for row in found]


def history(schedule: Schedule, count: int = HISTORY) -> list[PastTick]:
    """Return the last ticks of a schedule, the newest first."""
    database = schedule._state.db or "default"
    ticks = Tick.objects.using(database).filter(schedule=schedule).order_by("-tick")
    return list(_with_states(database, dict(enumerate(ticks[:count]))).values())


def failing(database: str) -> dict[str, str]:
    """Return the errors of enabled schedules that cannot tick, by name."""
    rows = Schedule.objects.using(database).filter(enabled=True).exclude(error="")
    return dict(rows.order_by("name").values_list("name", "error")[:MAX_LISTED])


def late(database: str) -> list[str]:
    """Return the names of schedules that were to be looked at long ago: no scheduler runs."""
    return list(_late(database).order_by("name").values_list("name", flat=True)[:MAX_LISTED])


def _late(database: str) -> QuerySet[Schedule]:
    before = Now() - timedelta(seconds=AUDIT_PATIENCE_SECONDS)
    rows = Schedule.objects.using(database).filter(enabled=True, error="")
    rows = rows.exclude(Q(source=CODE, undeclared_at__isnull=False))
    return rows.annotate(due=Coalesce("look_at", "last_tick")).filter(due__lt=before)


def _status(
    row: Schedule, last: PastTick | None, count: int, backend: str, is_late: bool
) -> ScheduleStatus:
    try:
        words = row.as_plan().words()
        ticks = preview_schedule(row, count, backend=backend)
    except InvalidSchedule as error:
        return ScheduleStatus(row, _state(row, True), str(error), [], last, is_late)
    return ScheduleStatus(row, _state(row, bool(ticks)), words, ticks, last, is_late)


def _state(row: Schedule, has_next: bool) -> str:
    if row.source == CODE and row.undeclared_at is not None:
        return "undeclared"
    if not row.enabled:
        return "disabled"
    if row.error:
        return "failing"
    return "ticking" if has_next else "over"


def _last_ticks(database: str, rows: list[Schedule]) -> Mapping[int, PastTick]:
    newest = Tick.objects.filter(schedule=OuterRef("pk")).order_by("-tick").values("pk")[:1]
    ids = (
        Schedule.objects.using(database)
        .filter(pk__in=[row.pk for row in rows])
        .annotate(newest=Subquery(newest))
        .values("newest")
    )
    ticks = Tick.objects.using(database).filter(pk__in=ids)
    return _with_states(database, {tick.schedule_id: tick for tick in ticks})


def _with_states(database: str, ticks: Mapping[int, Tick]) -> dict[int, PastTick]:
    ids = [tick.job_id for tick in ticks.values() if tick.job_id is not None]
    states: dict[Any, str] = dict(
        Job.objects.using(database).filter(pk__in=ids).values_list("pk", "state")
    )
    return {
        key: PastTick(t.tick, t.at, t.outcome, t.missed, t.job_id, states.get(t.job_id))
        for key, t in ticks.items()
    }
