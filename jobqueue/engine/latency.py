"""How long it takes: attempts' waiting from due to started, and running. Read from the rollups.

A percentile is computed from the sum of all histograms that it is about, and is at most a quarter
off (`jobqueue.histogram`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from django.db.models import Sum

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.engine.rollup_windows import (
    COLUMN,
    ENDED,
    RATE_MINUTES,
    Window,
    busiest,
    last_minutes,
    window,
)
from jobqueue.histogram import PERCENTILES, Histogram, load, percentile
from jobqueue.states import FAILURES, Outcome

MINUTES_UP_TO_SECONDS = 2 * 3_600.0
"""Histograms of longer periods are read from hours: they are added up here, not in the database."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How long it took, in seconds; None where nothing was measured."""

    count: int = 0
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the attempts of a name waited from due to started, and ran."""

    name: str
    attempts: int
    failed: int
    wait: Spread
    run: Spread


@dataclass(frozen=True, slots=True)
class Totals:
    """All attempts of a period. per_minute: over the last whole minutes."""

    as_of: datetime | None
    outcomes: dict[str, int]
    per_minute: float
    wait: Spread
    run: Spread

    @property
    def attempts(self) -> int:
        return sum(self.outcomes.values())


_COLUMNS = (*(outcome.value for outcome in Outcome), "wait_seconds", "run_seconds", "waits", "runs")


@dataclass(slots=True)
class _Sum:
    """Rollups added up."""

    outcomes: dict[str, int] = field(default_factory=lambda: {o.value: 0 for o in Outcome})
    wait_seconds: float = 0.0
    run_seconds: float = 0.0
    waits: Histogram = field(default_factory=Histogram)
    runs: Histogram = field(default_factory=Histogram)

    def add(self, row: Sequence[Any]) -> None:
        """Add a row of `_COLUMNS`."""
        *outcomes, wait_seconds, run_seconds, waits, runs = row
        for outcome, count in zip(self.outcomes, outcomes, strict=True):
            self.outcomes[outcome] += count
        self.wait_seconds += wait_seconds
        self.run_seconds += run_seconds
        self.waits.update(load(waits))
        self.runs.update(load(runs))

    def latency(self, name: str) -> Latency:
        failed = sum(self.outcomes[outcome] for outcome in FAILURES)
        return Latency(name, sum(self.outcomes.values()), failed, self.wait, self.run)

    @property
    def wait(self) -> Spread:
        return _spread(self.waits, self.wait_seconds)

    @property
    def run(self) -> Spread:
        return _spread(self.runs, self.run_seconds)


def latency(
    period_seconds: float,
    by: Literal["queue", "task"] = "queue",
    *,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    now: datetime | None = None,
) -> list[Latency]:
    """Return how long attempts waited and ran, for each of the busiest queues or tasks."""
    over = _window(period_seconds, backend, now)
    column = COLUMN[by]
    names, _ = busiest(over, by)
    sums = {name: _Sum() for name in names}
    for name, *row in _rows(over, column, **{f"{column}__in": names}):
        sums[name].add(row)
    return [each.latency(name) for name, each in sums.items()]


@dataclass(frozen=True, slots=True)
class LatencySeries:
    """How long attempts waited and ran, by step."""

    as_of: datetime | None
    step_seconds: int
    starts: Sequence[datetime]
    waits: Sequence[Spread]
    runs: Sequence[Spread]


def latency_series(
    period_seconds: float,
    *,
    queue: str | None = None,
    task: str | None = None,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    now: datetime | None = None,
) -> LatencySeries:
    """Return how long attempts waited and ran in each step: of a queue, of a task, or of all."""
    over = _window(period_seconds, backend, now)
    filters = {k: v for k, v in {"queue": queue, "name": task}.items() if v is not None}
    sums = [_Sum() for _ in over.starts]
    for at, *row in _rows(over, "at", **filters):
        sums[over.index(at)].add(row)
    return LatencySeries(
        over.as_of,
        over.step_seconds,
        over.starts,
        [each.wait for each in sums],
        [each.run for each in sums],
    )


def totals(
    period_seconds: float,
    *,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    now: datetime | None = None,
) -> Totals:
    """Return what happened in a period: attempts by outcome, their rate, waiting and running."""
    over = _window(period_seconds, backend, now)
    total = _Sum()
    for _, *row in _rows(over, "at"):
        total.add(row)
    last = last_minutes(backend, now)
    ended = last.rows("task", at__lt=last.until).aggregate(count=Sum(ENDED))["count"] or 0
    outcomes = {name: count for name, count in total.outcomes.items() if count}
    return Totals(over.as_of, outcomes, ended / RATE_MINUTES, total.wait, total.run)


def _window(period_seconds: float, backend: str, now: datetime | None) -> Window:
    return window(period_seconds, backend=backend, now=now, minutes_up_to=MINUTES_UP_TO_SECONDS)


def _rows(over: Window, first: str, **filters: Any) -> Iterator[Sequence[Any]]:
    """Return a column and `_COLUMNS` of the rollups by task within a period."""
    return over.rows("task", **filters).values_list(first, *_COLUMNS).iterator()


def _spread(histogram: Histogram, total_seconds: float) -> Spread:
    count = histogram.total()
    if not count:
        return Spread()
    return Spread(
        count, total_seconds / count, *(percentile(histogram, share) for share in PERCENTILES)
    )
