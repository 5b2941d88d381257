"""What is going on right now: counts, queues, workers, ages, and the health of all of it.

`status` only reads, in a handful of statements that each see their own moment. Nothing here counts
finished jobs (there may be millions), and all other counting stops at a limit.
`jobqueue.engine.findings` says what of it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connections
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from jobqueue import hints
from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS, DEFAULT_TASK_QUEUE_NAME
from jobqueue.conf import options_for
from jobqueue.engine import schedule_status
from jobqueue.engine.counts import COUNT_LIMIT, Count, limited
from jobqueue.engine.documents import plain
from jobqueue.engine.health import Health, look
from jobqueue.exceptions import InvalidOptions
from jobqueue.models import Queue, Worker
from jobqueue.states import State
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.records import WorkerRow

DEAD_WORKERS_SECONDS = 3_600.0
"""How far back dead workers are listed."""
MAX_LISTED = 100
"""Workers, and unknown tasks, that are listed by name; more would help nobody."""
MAX_QUEUES = 1_000
"""Queues with ready jobs that are looked at."""
NONE = Count(0)


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One queue: its ready jobs, and who paused it if somebody did.

    oldest_ready_seconds: of the most urgent ones, if there are more than were counted.
    """

    name: str
    ready: Count = NONE
    oldest_ready_seconds: float | None = None
    paused: bool = False
    paused_by: str = ""
    paused_reason: str = ""
    paused_at: datetime | None = None
    limited: bool = False


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One process that is not dead. is_expired: its lease ran out and nobody has noticed yet."""

    id: UUID
    kind: str
    name: str
    host: str
    pid: int
    slots: int
    queues: Sequence[str]
    draining: bool
    heartbeat_seconds: float
    is_expired: bool
    version: str = ""
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeadWorker:
    """One process that died lately, how long ago, and why. seen_at: its last heartbeat; died_at:
    when it was declared dead.
    """

    id: UUID
    kind: str
    name: str
    host: str
    pid: int
    seconds: float
    reason: str
    started_at: datetime | None = None
    seen_at: datetime | None = None
    died_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A look at one TASKS alias and its database; ages in seconds on the database's clock.

    counts: jobs by state, live ones and dead. blocked: by reason. unknown_tasks: blocked jobs by
    a task that no live worker has registered. late_schedules: due, and no scheduler has looked;
    failing_schedules: errors of those that cannot tick. health: what may be in the way.
    """

    backend: str
    database: str
    vendor: str
    as_of: datetime
    counts: Mapping[str, Count]
    blocked: Mapping[str, Count]
    queues: Sequence[QueueStatus]
    workers: Sequence[WorkerStatus]
    dead_workers: Sequence[DeadWorker]
    oldest_unpromoted: float | None
    oldest_unreaped: float | None
    unknown_tasks: Mapping[str, Count]
    late_schedules: Sequence[str]
    failing_schedules: Mapping[str, str]
    hints: str
    health: Health

    @property
    def backlog(self) -> Count:
        """Ready jobs in queues that are not paused."""
        return sum((q.ready for q in self.queues if not q.paused), NONE)

    @property
    def oldest_ready(self) -> float | None:
        """Age of the oldest ready job."""
        return _oldest(self.queues)

    @property
    def oldest_claimable(self) -> float | None:
        """Age of the oldest ready job in a queue that is not paused."""
        return _oldest([q for q in self.queues if not q.paused])

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; times and ids become text in JSON."""
        document: dict[str, Any] = plain(self)
        return document | {
            "backlog": plain(self.backlog),
            "oldest_ready": self.oldest_ready,
            "oldest_claimable": self.oldest_claimable,
        }


def status(
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    storage: Storage | None = None,
    count_limit: int = COUNT_LIMIT,
) -> Status:
    """Return what is going on under TASKS alias `backend`, by default on Django's connection.

    count_limit: as far as jobs of a state, and of a queue, are counted.
    """
    options = options_for(backend)
    storage = storage or storage_for(connections[options.database], options)
    ages = storage.backlog_ages()
    return Status(
        backend=backend,
        database=options.database,
        vendor=storage.vendor,
        as_of=storage.clock(),
        counts=count_states(storage, count_limit),
        blocked=_limited(storage.blocked_counts(count_limit + 1), count_limit),
        queues=_queues(storage, options.database, _configured_queues(backend), count_limit),
        workers=_workers(options.database, storage.workers()),
        dead_workers=_dead_workers(options.database),
        oldest_unpromoted=ages["oldest_unpromoted"],
        oldest_unreaped=ages["oldest_unreaped"],
        unknown_tasks=_unknown_tasks(storage, count_limit),
        late_schedules=schedule_status.late(options.database),
        failing_schedules=schedule_status.failing(options.database),
        hints=_hints_kind(backend),
        health=look(backend, options.database, storage),
    )


def queue_statuses(
    backend: str = DEFAULT_TASK_BACKEND_ALIAS, count_limit: int = COUNT_LIMIT
) -> tuple[QueueStatus, ...]:
    """Return the queues that the settings name, that hold ready jobs, or that somebody touched."""
    options = options_for(backend)
    storage = storage_for(connections[options.database], options)
    return _queues(storage, options.database, _configured_queues(backend), count_limit)


def worker_statuses(
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> tuple[Sequence[WorkerStatus], Sequence[DeadWorker]]:
    """Return the processes that are not dead, and those that died lately; `MAX_LISTED` of each."""
    options = options_for(backend)
    storage = storage_for(connections[options.database], options)
    return _workers(options.database, storage.workers()), _dead_workers(options.database)


def leases_left(backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> dict[UUID, float]:
    """Return how many seconds of its lease each process has left that is not dead.

    Below zero for those that do not live, whatever their rows say: on SQLite a lock decides.
    """
    options = options_for(backend)
    storage = storage_for(connections[options.database], options)
    return {row.id: row.lease_left for row in storage.workers()}


# --- parts ----------------------------------------


LIVE_STATES = (
    State.READY,
    State.RUNNING,
    State.SCHEDULED,
    State.RETRYING,
    State.BLOCKED,
    State.DEAD,
)
"""The states that are counted, in the order in which they are shown."""


def count_states(storage: Storage, limit: int = COUNT_LIMIT) -> dict[str, Count]:
    """Return how many jobs are in each state that is counted, in the order of `LIVE_STATES`."""
    found = storage.state_counts(limit + 1)
    waiting = (State.SCHEDULED, State.RETRYING)  # counted together, hence cut off together
    is_cut = sum(found.get(state, 0) for state in waiting) > limit
    return {
        state.value: _count(storage, state, found.get(state, 0), limit, is_cut and state in waiting)
        for state in LIVE_STATES
    }


def _count(storage: Storage, state: str, value: int, limit: int, is_cut: bool) -> Count:
    """Return a count; beyond the limit the database's own estimate, if it has one that is more."""
    if value <= limit and not is_cut:
        return Count(value)
    estimate = storage.estimated_count(state)
    if estimate is not None and estimate > limit:
        return Count(estimate, "estimate")
    return Count(min(value, limit), "gte")


def _limited(found: Mapping[str, int], limit: int) -> dict[str, Count]:
    return {name: limited(value, limit) for name, value in found.items()}


def _oldest(queues: Sequence[QueueStatus]) -> float | None:
    ages = [q.oldest_ready_seconds for q in queues if q.oldest_ready_seconds is not None]
    return max(ages, default=None)


def _configured_queues(backend: str) -> Iterable[str]:
    params = getattr(settings, "TASKS", {}).get(backend, {})
    return params.get("QUEUES", [DEFAULT_TASK_QUEUE_NAME]) or ()


def _age_of(expression: Any) -> ExpressionWrapper[Any]:
    return ExpressionWrapper(Now() - expression, output_field=DurationField())


def _queues(
    storage: Storage, database: str, configured: Iterable[str], limit: int
) -> tuple[QueueStatus, ...]:
    ready = {b.queue: b for b in storage.queue_backlogs(limit + 1, MAX_QUEUES)}
    rows = {queue.name: queue for queue in Queue.objects.using(database)}
    return tuple(
        _queue(
            name,
            limited(ready[name].ready, limit) if name in ready else NONE,
            ready[name].oldest_seconds if name in ready else None,
            rows.get(name),
        )
        for name in sorted({*configured, *ready, *rows})
    )


def _queue(name: str, ready: Count, seconds: float | None, row: Queue | None) -> QueueStatus:
    if row is None or not row.paused:
        return QueueStatus(name, ready, seconds, limited=row is not None and row.limited)
    return QueueStatus(
        name=name,
        ready=ready,
        oldest_ready_seconds=seconds,
        paused=True,
        paused_by=row.paused_by,
        paused_reason=row.paused_reason,
        paused_at=row.paused_at,
        limited=row.limited,
    )


def _workers(database: str, alive: Sequence[WorkerRow]) -> tuple[WorkerStatus, ...]:
    listed = {row.id: row for row in alive[:MAX_LISTED]}
    rows = Worker.objects.using(database).filter(id__in=list(listed)).defer("tasks")
    return tuple(
        WorkerStatus(
            id=w.id,
            kind=w.kind,
            name=w.name,
            host=w.host,
            pid=w.pid,
            slots=w.slots,
            queues=w.queues,
            draining=w.draining,
            heartbeat_seconds=listed[w.id].renewed_ago,
            is_expired=listed[w.id].lease_left < 0,
            version=w.version,
            started_at=w.started_at,
        )
        for w in rows.order_by("host", "kind", "name", "pid")
    )


def _dead_workers(database: str) -> tuple[DeadWorker, ...]:
    rows = (
        Worker.objects.using(database)
        .filter(dead=True, dead_at__gt=Now() - timedelta(seconds=DEAD_WORKERS_SECONDS))
        .annotate(ago=_age_of(F("dead_at")))
        .order_by("-dead_at")
    )
    return tuple(
        DeadWorker(
            id=row.id,
            kind=row.kind,
            name=row.name,
            host=row.host,
            pid=row.pid,
            seconds=row.ago.total_seconds(),
            reason=row.dead_reason,
            started_at=row.started_at,
            seen_at=row.heartbeat_at,
            died_at=row.dead_at,
        )
        for row in rows.defer("tasks")[:MAX_LISTED]
    )


def _unknown_tasks(storage: Storage, limit: int) -> dict[str, Count]:
    tasks = storage.parked_tasks(MAX_LISTED)
    return _limited(storage.parked_counts(tasks, limit + 1), limit) if tasks else {}


def _hints_kind(backend: str) -> str:
    try:
        return hints.kind(backend)
    except InvalidOptions:
        return "unusable"  # a system check says why; jobs run without them
