"""Whether jobs get done at all: the few facts that a probe asks for every few seconds.

Cheaper than `jobqueue.engine.status`: three statements, each served by an index, however big the
tables are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connections

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import AUDIT_PATIENCE_SECONDS, options_for
from jobqueue.models import Queue
from jobqueue.storage import Storage, storage_for

MAX_QUEUES = 1_000
"""Queues with ready jobs that are looked at."""
BACKLOG = 1_000
"""Ready jobs of a queue among which the oldest is looked for, the most urgent first."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """The facts; ages in seconds on the database's clock, None where there is no such job.

    workers: processes that run jobs and hold their lease. oldest_ready: of queues that are not
    paused.
    """

    workers: int
    oldest_ready: float | None
    oldest_unpromoted: float | None
    oldest_unreaped: float | None

    def failures(self, max_age: float | None = None) -> list[str]:
        """Return what is not as it must be: "workers", "unpromoted", "unreaped", "ready"."""
        return list(self._failures(max_age))

    def _failures(self, max_age: float | None) -> Iterator[str]:
        if not self.workers:
            yield "workers"
        if (self.oldest_unpromoted or 0) > AUDIT_PATIENCE_SECONDS:
            yield "unpromoted"
        if (self.oldest_unreaped or 0) > AUDIT_PATIENCE_SECONDS:
            yield "unreaped"
        if max_age is not None and (self.oldest_ready or 0) > max_age:
            yield "ready"


def readiness(backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> Readiness:
    """Return how things are under TASKS alias `backend`."""
    options = options_for(backend)
    storage = storage_for(connections[options.database], options)
    ages = storage.backlog_ages()
    alive = [row for row in storage.workers() if row.kind == "worker" and row.lease_left >= 0]
    return Readiness(
        workers=len(alive),
        oldest_ready=_oldest_ready(storage, options.database),
        oldest_unpromoted=ages["oldest_unpromoted"],
        oldest_unreaped=ages["oldest_unreaped"],
    )


def _oldest_ready(storage: Storage, database: str) -> float | None:
    paused = set(Queue.objects.using(database).filter(paused=True).values_list("name", flat=True))
    backlogs = storage.queue_backlogs(BACKLOG, MAX_QUEUES)
    return max((b.oldest_seconds for b in backlogs if b.queue not in paused), default=None)
