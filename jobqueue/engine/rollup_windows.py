"""Periods as rollups know them: which rows to read, and into which steps they fall.

Short periods are read from minutes, long ones from hours, so that a question costs some thousand
small rows at most. Times are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import add
from typing import Any, Literal

from django.db import connections
from django.db.models import F, QuerySet, Sum

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import HOUR_ROLLUP_SECONDS, options_for
from jobqueue.engine.rollups import HOUR, MINUTE, counted_until
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Rollup
from jobqueue.states import CHARGED, FAILURES, Outcome
from jobqueue.storage import storage_for

MINUTES_UP_TO_SECONDS = 6 * 3_600.0
"""Counts of longer periods are read from hours."""
MAX_POINTS = 120
"""Points of a line: more than a chart can show apart."""
MAX_NAMES = 20
"""Names that are listed, the busiest ones."""
STEPS = (60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400)
RATE_MINUTES = 5
"""Whole minutes over which a rate is taken."""
ENDED = sum((F(outcome.value) for outcome in Outcome if outcome != "succeeded"), F("succeeded"))
"""Attempts that ended in any way."""
FAILED = reduce(add, (F(outcome.value) for outcome in sorted(FAILURES)))
FAULTS = reduce(add, (F(outcome.value) for outcome in sorted(CHARGED)))
"""Those without lost ones, which no code of a job is to blame for."""

By = Literal["outcome", "queue", "task", "worker"]
KIND = {"queue": "task", "task": "task", "worker": "worker"}
COLUMN = {"queue": "queue", "task": "name", "worker": "name"}


@dataclass(frozen=True, slots=True)
class Window:
    """A period that ends now, as rollups know it.

    as_of: up to when attempts were counted, None if never. Its steps begin at `starts`; the first
    is whole, the last still open.
    """

    database: str
    since: datetime
    until: datetime
    as_of: datetime | None
    seconds: int
    step_seconds: int

    @property
    def starts(self) -> list[datetime]:
        count = -(-(self.until - self.since) // timedelta(seconds=self.step_seconds))
        return [self.since + timedelta(seconds=self.step_seconds * n) for n in range(count)]

    def index(self, at: datetime) -> int:
        """Return the number of the step that a rollup falls into."""
        return int((at - self.since).total_seconds() // self.step_seconds)

    def rows(self, kind: str, **filters: Any) -> QuerySet[Rollup]:
        """Return the rollups of a kind within the period."""
        return Rollup.objects.using(self.database).filter(
            seconds=self.seconds, kind=kind, at__gte=self.since, **filters
        )


def window(
    period_seconds: float,
    *,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    now: datetime | None = None,
    minutes_up_to: float = MINUTES_UP_TO_SECONDS,
) -> Window:
    """Return the period of `period_seconds` that ends now.

    minutes_up_to: longer ones are read from hours.

    Raise InvalidArgument unless it lies between a minute and what rollups are kept for.
    """
    if not MINUTE <= period_seconds <= HOUR_ROLLUP_SECONDS:
        raise InvalidArgument(
            f"A period has {MINUTE} to {HOUR_ROLLUP_SECONDS:.0f} seconds, not {period_seconds:g}."
        )
    database = options_for(backend).database
    now = now or storage_for(connections[database]).clock()
    seconds = MINUTE if period_seconds <= minutes_up_to else HOUR
    step = next(s for s in STEPS if s >= seconds and period_seconds / s <= MAX_POINTS)
    since = floor_time(now - timedelta(seconds=period_seconds), step)
    return Window(database, since, now, counted_until(database, now), seconds, step)


def last_minutes(backend: str, now: datetime | None) -> Window:
    """Return the last whole minutes that have been counted; its end is not part of it."""
    over = window(RATE_MINUTES * MINUTE, backend=backend, now=now)
    until = floor_time(over.as_of or over.until, MINUTE)
    since = until - timedelta(minutes=RATE_MINUTES)
    return Window(over.database, since, until, over.as_of, MINUTE, MINUTE)


def busiest(over: Window, by: str) -> tuple[list[str], int]:
    """Return the names with most attempts, and how many more there are."""
    column = COLUMN[by]
    totals = over.rows(KIND[by]).values_list(column).annotate(count=Sum(ENDED))
    names = [name for name, _ in totals.order_by("-count", column)[: MAX_NAMES + 1]]
    if len(names) <= MAX_NAMES:
        return names, 0
    known = over.rows(KIND[by]).order_by().values(column).distinct().count()
    return names[:MAX_NAMES], known - MAX_NAMES


def floor_time(time: datetime, seconds: int) -> datetime:
    """Return the last time that is a multiple of `seconds` since 1970."""
    return datetime.fromtimestamp(time.timestamp() // seconds * seconds, UTC)
