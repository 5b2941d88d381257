"""How much is done: attempts that ended, by step, and by worker a minute. Read from the rollups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Sum

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.engine.rollup_windows import (
    COLUMN,
    ENDED,
    FAILED,
    FAULTS,
    KIND,
    RATE_MINUTES,
    By,
    Window,
    busiest,
    last_minutes,
    window,
)
from jobqueue.models import Worker
from jobqueue.states import Outcome


@dataclass(frozen=True, slots=True)
class Line:
    """Attempts that ended, by step. failed: of them, without lost ones; () in lines by outcome."""

    name: str
    counts: Sequence[int]
    failed: Sequence[int] = ()

    @property
    def total(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Series:
    """Lines over the same steps. others: names that were not busy enough to be listed."""

    as_of: datetime | None
    step_seconds: int
    starts: Sequence[datetime]
    lines: Sequence[Line]
    others: int = 0


@dataclass(frozen=True, slots=True)
class WorkerRate:
    """What one worker process ended a minute, over the last whole minutes."""

    worker: UUID
    name: str
    host: str
    per_minute: float
    failed_per_minute: float


def throughput(
    period_seconds: float,
    by: By = "outcome",
    *,
    queue: str | None = None,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    now: datetime | None = None,
) -> Series:
    """Return how many attempts ended in each step, a line for each outcome, queue, task or worker.

    The busiest twenty are listed. A worker's name is its identity. queue: by outcome, of it alone.
    """
    over = window(period_seconds, backend=backend, now=now)
    if by == "outcome":
        return _by_outcome(over, queue)
    column = COLUMN[by]
    names, others = busiest(over, by)
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(over.starts))
    failures: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(over.starts))
    rows = over.rows(KIND[by], **{f"{column}__in": names}).values_list(column, "at")
    for name, at, ended, failed in rows.annotate(ended=Sum(ENDED), faults=Sum(FAULTS)).order_by():
        counts[name][over.index(at)] += ended
        failures[name][over.index(at)] += failed
    lines = [Line(name, counts[name], failures[name]) for name in names]
    return Series(over.as_of, over.step_seconds, over.starts, lines, others)


def _by_outcome(over: Window, queue: str | None) -> Series:
    counts = {outcome.value: [0] * len(over.starts) for outcome in Outcome}
    sums = {f"n_{outcome.value}": Sum(outcome.value) for outcome in Outcome}
    of_it = {} if queue is None else {"queue": queue}
    rows = over.rows("task", **of_it).values_list("at").annotate(**sums).order_by()
    for at, *found in rows:
        for line, count in zip(counts.values(), found, strict=True):
            line[over.index(at)] += count
    lines = [Line(name, line) for name, line in counts.items() if any(line)]
    return Series(over.as_of, over.step_seconds, over.starts, lines)


def worker_rates(
    *, backend: str = DEFAULT_TASK_BACKEND_ALIAS, now: datetime | None = None
) -> list[WorkerRate]:
    """Return how busy each worker was that ended anything lately, the busiest first."""
    over = last_minutes(backend, now)
    rows = (
        over.rows("worker", at__lt=over.until)
        .values_list("name")
        .annotate(ended=Sum(ENDED), failures=Sum(FAILED))
        .order_by("-ended", "name")
    )
    found = {UUID(hex=name): (ended, failed) for name, ended, failed in rows}
    known = Worker.objects.using(over.database).filter(id__in=list(found))
    names = {id: (name, host) for id, name, host in known.values_list("id", "name", "host")}
    return [
        WorkerRate(worker, *names.get(worker, ("", "")), *(n / RATE_MINUTES for n in counts))
        for worker, counts in found.items()
    ]
