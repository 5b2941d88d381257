"""What fails: groups of alike errors, how often, since when, and how many jobs they have killed.

Groups are kept for a month after they were last seen, and the newest ten thousand at most. Their
counts are of attempts; `dead` counts the dead letters that a requeue of the group would take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from django.db import connections
from django.db.models import Sum

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import options_for
from jobqueue.engine.counts import Count, limited
from jobqueue.engine.rollup_windows import FAILED, Window, window
from jobqueue.models import ErrorGroup
from jobqueue.storage import storage_for

MAX_GROUPS = 100
"""Groups that are listed at most."""
DEAD_LIMIT = 1_000
"""As far as the dead letters of a group are counted."""

Order = Literal["last_seen", "count"]


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """One group. message: without what differs from one to the next.

    total: attempts since it was first seen. counts: of the period asked for, by its steps.
    job_id, task, queue: of the newest one.
    """

    fingerprint: str
    error_class: str
    message: str
    total: int
    first_seen: datetime
    last_seen: datetime
    job_id: UUID
    task: str
    queue: str
    dead: Count
    counts: Sequence[int]

    @property
    def count(self) -> int:
        """Attempts within the period."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class ErrorGroups:
    """The groups of a period, over the same steps."""

    as_of: datetime | None
    step_seconds: int
    starts: Sequence[datetime]
    groups: Sequence[ErrorLine]


def error_groups(
    period_seconds: float,
    order: Order = "last_seen",
    *,
    limit: int = 20,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    now: datetime | None = None,
) -> ErrorGroups:
    """Return the groups seen within a period: those seen last, or those with most errors first."""
    over = window(period_seconds, backend=backend, now=now)
    limit = min(limit, MAX_GROUPS)
    groups = ErrorGroup.objects.using(over.database)
    if order == "last_seen":
        newest = groups.filter(last_seen__gte=over.since).order_by("-last_seen", "fingerprint")
        return _answer(over, backend, list(newest[:limit]))
    frequent = over.rows("error").values_list("name").annotate(count=Sum(FAILED))
    names = [name for name, _ in frequent.order_by("-count", "name")[:limit]]
    found = {group.fingerprint: group for group in groups.filter(fingerprint__in=names)}
    return _answer(over, backend, [found[name] for name in names if name in found])


def error_group(
    fingerprint: str,
    period_seconds: float,
    *,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    now: datetime | None = None,
) -> ErrorGroups:
    """Return one group, or none if there is no such group, with its course over a period."""
    over = window(period_seconds, backend=backend, now=now)
    groups = ErrorGroup.objects.using(over.database).filter(fingerprint=fingerprint)
    return _answer(over, backend, list(groups))


def _answer(over: Window, backend: str, groups: Sequence[ErrorGroup]) -> ErrorGroups:
    names = [group.fingerprint for group in groups]
    counts = _counts(over, names)
    storage = storage_for(connections[over.database], options_for(backend))
    dead = storage.dead_by_error(names, DEAD_LIMIT + 1) if names else {}
    lines = [_line(g, counts[g.fingerprint], dead.get(g.fingerprint, 0)) for g in groups]
    return ErrorGroups(over.as_of, over.step_seconds, over.starts, lines)


def _counts(over: Window, names: Iterable[str]) -> defaultdict[str, list[int]]:
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(over.starts))
    rows = over.rows("error", name__in=list(names)).values_list("name", "at")
    for name, at, count in rows.annotate(count=Sum(FAILED)).order_by():
        counts[name][over.index(at)] += count
    return counts


def _line(group: ErrorGroup, counts: Sequence[int], dead: int) -> ErrorLine:
    return ErrorLine(
        fingerprint=group.fingerprint,
        error_class=group.error_class,
        message=group.message,
        total=group.count,
        first_seen=group.first_seen,
        last_seen=group.last_seen,
        job_id=group.job_id,
        task=group.task,
        queue=group.queue,
        dead=limited(dead, DEAD_LIMIT),
        counts=counts,
    )
