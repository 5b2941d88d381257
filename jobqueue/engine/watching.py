"""What somebody who watches asks again and again: small, bounded looks that change nothing.

    watch = Watch("default")               # in the thread that will ask
    mark = watch.mark()                    # equal marks: nothing was committed in between
    watch.present()                        # counts, queues, workers
    watch.marks(ids), watch.page(chosen, 50), watch.facts(job)
    watch.close()

It asks on a session of its own, outside the project's pool, that notices within seconds when the
server has gone. Jobs pay nothing for it: there is no trigger, and no statement that a worker runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import batched
from typing import NamedTuple
from uuid import UUID

from django.db import connections
from django.db.models import Count as CountOf
from django.db.models import Max, QuerySet
from django.db.models.functions import Now

from jobqueue.conf import options_for
from jobqueue.engine.counts import Count
from jobqueue.engine.job_pages import job_page
from jobqueue.engine.status import (
    DEAD_WORKERS_SECONDS,
    MAX_LISTED,
    QueueStatus,
    count_states,
    queue_statuses,
)
from jobqueue.filters import Filter
from jobqueue.models import Attempt, Job, LogLine, Progress, Rolling, Worker
from jobqueue.states import State
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import discard, open_connection

CHUNK = 1_000
"""Ids in one statement."""


class Mark(NamedTuple):
    """How a job is: what tells that it has changed."""

    state: str
    version: int


class WorkerMark(NamedTuple):
    """How a worker is: alive, draining, expired or dead; and how many jobs it holds."""

    condition: str
    running: int


class JobFacts(NamedTuple):
    """How a job is, and what it has said: done and total of its progress, its newest log line."""

    state: str
    version: int
    attempts: int
    progress: tuple[float, float | None] | None
    log: int | None


@dataclass(frozen=True, slots=True)
class Present:
    """The whole, as of a time on the database's clock.

    attempts: grows with each attempt that ends, by about one. rolled_up_at: as of when rollups are.
    """

    as_of: datetime
    counts: Mapping[str, Count]
    queues: Sequence[QueueStatus]
    workers: Mapping[UUID, WorkerMark]
    attempts: int
    rolled_up_at: datetime | None


class Watch:
    """Looks at the jobs of one TASKS alias, from one thread; see the module."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._options = options_for(backend)
        self._database = self._options.database
        self._is_open = False

    def mark(self) -> str:
        """Return what differs if anything was committed since it was asked for last."""
        return self._storage().change_mark()

    def close(self) -> None:
        """End the session; the next look opens another."""
        if self._is_open:
            discard(connections[self._database])
            del connections[self._database]
            self._is_open = False

    def present(self) -> Present:
        """Return the whole."""
        storage = self._storage()
        return Present(
            as_of=storage.clock(),
            counts=count_states(storage),
            queues=queue_statuses(self._backend),
            workers=self._workers(storage),
            attempts=Attempt.objects.using(self._database).aggregate(id=Max("id"))["id"] or 0,
            rolled_up_at=self._rolled_up_at(),
        )

    def marks(self, ids: Collection[UUID], owner: str | None = None) -> dict[UUID, Mark]:
        """Return how these jobs are; those that are gone, or not of `owner`, are missing."""
        self._storage()
        found: dict[UUID, Mark] = {}
        for some in batched(sorted(ids), CHUNK):
            rows = self._jobs(owner).filter(id__in=some)
            for id, state, version in rows.values_list("id", "state", "version"):
                found[id] = Mark(state, version)
        return found

    def page(
        self, chosen: Filter, size: int, default: frozenset[State], owner: str | None = None
    ) -> dict[UUID, Mark]:
        """Return the first page of the jobs that match."""
        self._storage()
        page = job_page(
            chosen,
            limit=size,
            default=default,
            owner=owner,
            backend=self._backend,
            columns=("state", "version"),
        )
        return {job.id: Mark(job.state, job.version) for job in page.jobs}

    def facts(self, job: UUID, owner: str | None = None) -> JobFacts | None:
        """Return how a job is, None if it is gone or not of `owner`."""
        self._storage()
        rows = self._jobs(owner).filter(id=job).values_list("state", "version", "attempts")
        found = rows.first()
        if found is None:
            return None
        progress = Progress.objects.using(self._database).filter(job_id=job).order_by("-fence")
        lines = LogLine.objects.using(self._database).filter(job_id=job)
        newest = lines.order_by("-fence", "-number").values_list("id", flat=True).first()
        return JobFacts(*found, progress.values_list("done", "total").first(), newest)

    # --- how ----------------------------------------

    def _storage(self) -> Storage:
        if not self._is_open:
            connections[self._database] = open_connection(self._database)
            self._is_open = True
        return storage_for(connections[self._database], self._options)

    def _jobs(self, owner: str | None) -> QuerySet[Job]:
        rows = Job.objects.using(self._database)
        return rows if owner is None else rows.filter(created_by=owner, created_by__gt="")

    def _workers(self, storage: Storage) -> dict[UUID, WorkerMark]:
        rows = Worker.objects.using(self._database)
        draining = set(rows.filter(dead=False, draining=True).values_list("id", flat=True))
        since = Now() - timedelta(seconds=DEAD_WORKERS_SECONDS)
        dead = rows.filter(dead=True, dead_at__gt=since).order_by("-dead_at", "id")
        running = self._running()
        found = {
            row.id: WorkerMark(_condition(row.lease_left, row.id in draining), running[row.id])
            for row in storage.workers()
        }
        gone = {
            id: WorkerMark("dead", running[id])
            for id in dead.values_list("id", flat=True)[:MAX_LISTED]
        }
        return gone | found

    def _running(self) -> Counter[UUID]:
        rows = Job.objects.using(self._database).filter(state=State.RUNNING)
        held = rows.values_list("worker").annotate(held=CountOf("id")).order_by()
        return Counter({worker: number for worker, number in held if worker is not None})

    def _rolled_up_at(self) -> datetime | None:
        rows = Rolling.objects.using(self._database)
        return rows.values_list("rolled_at", flat=True).first()


def _condition(lease_left: float, is_draining: bool) -> str:
    if lease_left < 0:
        return "expired"
    return "draining" if is_draining else "alive"
