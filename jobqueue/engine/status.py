"""What is going on right now: counts, queues, workers, ages, and what is wrong with it.

`status` only reads, in a handful of statements that each see their own moment; nothing here
counts finished jobs (there may be millions). `problems` judges it: due jobs that nobody promotes
and jobs of dead workers that nobody takes back are always wrong, the rest by the bounds given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connections
from django.db.models import Count, DurationField, ExpressionWrapper, F, Min
from django.db.models.functions import Now

from jobqueue import hints
from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS, DEFAULT_TASK_QUEUE_NAME
from jobqueue.conf import AUDIT_PATIENCE_SECONDS, LONG_TRANSACTION_SECONDS, options_for
from jobqueue.engine import schedule_status
from jobqueue.exceptions import InvalidOptions
from jobqueue.models import Job, Queue, Worker
from jobqueue.states import State
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.records import HorizonHolder, WorkerRow

DEAD_WORKERS_SECONDS = 3_600.0
"""How far back dead workers are listed."""
MAX_LISTED = 100
"""Workers, and unknown tasks, that are listed by name; more would help nobody."""


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One queue: its ready jobs, and who paused it if somebody did."""

    name: str
    ready: int = 0
    oldest_ready_seconds: float | None = None
    paused: bool = False
    paused_by: str = ""
    paused_reason: str = ""


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


@dataclass(frozen=True, slots=True)
class DeadWorker:
    """One process that died lately, how long ago, and why."""

    id: UUID
    kind: str
    name: str
    host: str
    pid: int
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A look at one TASKS alias and its database; ages in seconds on the database's clock.

    counts: jobs by state, live ones and dead. unknown_tasks: blocked jobs by a task that no live
    worker has registered. late_schedules: due, and no scheduler has looked; failing_schedules:
    errors of those that cannot tick. horizon: who keeps dead rows from being removed (PostgreSQL).
    """

    backend: str
    database: str
    vendor: str
    as_of: datetime
    counts: Mapping[str, int]
    queues: Sequence[QueueStatus]
    workers: Sequence[WorkerStatus]
    dead_workers: Sequence[DeadWorker]
    oldest_ready: float | None
    oldest_unpromoted: float | None
    oldest_unreaped: float | None
    unknown_tasks: Mapping[str, int]
    late_schedules: Sequence[str]
    failing_schedules: Mapping[str, str]
    hints: str
    horizon: HorizonHolder | None

    @property
    def backlog(self) -> int:
        """Ready jobs in queues that are not paused."""
        return sum(queue.ready for queue in self.queues if not queue.paused)

    @property
    def oldest_claimable(self) -> float | None:
        """Age of the oldest ready job in a queue that is not paused."""
        ages = [q.oldest_ready_seconds for q in self.queues if not q.paused]
        return max((age for age in ages if age is not None), default=None)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; times and ids become text in JSON."""
        document = asdict(self) | {"backlog": self.backlog}
        document["horizon"] = self.horizon._asdict() if self.horizon else None
        return document


def status(backend: str = DEFAULT_TASK_BACKEND_ALIAS, storage: Storage | None = None) -> Status:
    """Return what is going on under TASKS alias `backend`, by default on Django's connection."""
    options = options_for(backend)
    storage = storage or storage_for(connections[options.database], options)
    ages = storage.backlog_ages()
    return Status(
        backend=backend,
        database=options.database,
        vendor=storage.vendor,
        as_of=storage.clock(),
        counts=_counts(storage),
        queues=_queues(options.database, _configured_queues(backend)),
        workers=_workers(options.database, storage.workers()),
        dead_workers=_dead_workers(options.database),
        oldest_ready=ages["oldest_ready"],
        oldest_unpromoted=ages["oldest_unpromoted"],
        oldest_unreaped=ages["oldest_unreaped"],
        unknown_tasks=_unknown_tasks(options.database),
        late_schedules=schedule_status.late(options.database),
        failing_schedules=schedule_status.failing(options.database),
        hints=_hints_kind(backend),
        horizon=storage.horizon_holder(),
    )


def problems(
    current: Status, max_age: float | None = None, max_backlog: int | None = None
) -> list[str]:
    """Return what is wrong, a sentence each with the way out; an empty list means healthy.

    max_age: seconds that a ready job may wait, max_backlog: ready jobs; both without paused
    queues, which wait because somebody said so.
    """
    return [
        *_late_upkeep(current),
        *schedule_status.late_problems(current.late_schedules),
        *_over_bounds(current, max_age, max_backlog),
    ]


def notices(current: Status) -> list[str]:
    """Return what an operator should know although nothing fails for it."""
    found = [
        f"Queue {queue.name} is paused by {queue.paused_by}: {queue.paused_reason or 'no reason'}"
        for queue in current.queues
        if queue.paused
    ]
    if current.unknown_tasks:
        found.append(
            f"{sum(current.unknown_tasks.values())} jobs are blocked: no live worker has their "
            "task. Deploy a worker that has it, or cancel them."
        )
    found += schedule_status.failing_notices(current.failing_schedules)
    if not any(w.kind == "worker" and not w.is_expired for w in current.workers):
        found.append("No worker is alive. Start one: manage.py runworker")
    return found + list(_horizon_notice(current.horizon))


def _horizon_notice(holder: HorizonHolder | None) -> Iterator[str]:
    if holder is not None and (holder.seconds or 0) > LONG_TRANSACTION_SECONDS:
        who = f"{holder.kind} {holder.name}" + (f" (pid {holder.pid})" if holder.pid else "")
        yield (
            f"A transaction has been open for {holder.seconds:.0f} s: {who}. While it is, dead "
            "rows stay and claims slow down; end it, or make a long job atomic=False."
        )


def _late_upkeep(current: Status) -> Iterator[str]:
    bound = AUDIT_PATIENCE_SECONDS
    if (current.oldest_unpromoted or 0) > bound:
        yield (
            f"A due job has waited {current.oldest_unpromoted:.0f} s to become ready (bound "
            f"{bound:.0f} s): no worker or scheduler promotes it. Start manage.py runworker."
        )
    if (current.oldest_unreaped or 0) > bound:
        yield (
            f"A job of a dead worker has waited {current.oldest_unreaped:.0f} s to be taken back "
            f"(bound {bound:.0f} s): no reaper runs. Start manage.py runworker or runreaper."
        )


def _over_bounds(current: Status, max_age: float | None, max_backlog: int | None) -> Iterator[str]:
    age = current.oldest_claimable or 0
    if max_age is not None and age > max_age:
        yield f"The oldest ready job has waited {age:.0f} s, more than {max_age:g} s."
    if max_backlog is not None and current.backlog > max_backlog:
        yield f"{current.backlog} jobs are ready, more than {max_backlog}."


# --- parts ----------------------------------------


def _counts(storage: Storage) -> dict[str, int]:
    found = storage.state_counts()
    return {state.value: found[state] for state in State if state in found}


def _configured_queues(backend: str) -> Iterable[str]:
    params = getattr(settings, "TASKS", {}).get(backend, {})
    return params.get("QUEUES", [DEFAULT_TASK_QUEUE_NAME]) or ()


def _age_of(expression: Any) -> ExpressionWrapper[Any]:
    return ExpressionWrapper(Now() - expression, output_field=DurationField())


def _queues(database: str, configured: Iterable[str]) -> tuple[QueueStatus, ...]:
    ready = {
        name: (count, age)
        for name, count, age in Job.objects.using(database)
        .filter(state=State.READY)
        .values_list("queue")
        .annotate(count=Count("id"), age=_age_of(Min("run_at")))
    }
    rows = {queue.name: queue for queue in Queue.objects.using(database)}
    return tuple(
        _queue(name, *ready.get(name, (0, None)), rows.get(name))
        for name in sorted({*configured, *ready, *rows})
    )


def _queue(name: str, count: int, age: timedelta | None, row: Queue | None) -> QueueStatus:
    seconds = None if age is None else age.total_seconds()
    if row is None or not row.paused:
        return QueueStatus(name, count, seconds)
    return QueueStatus(name, count, seconds, True, row.paused_by, row.paused_reason)


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
        DeadWorker(id, kind, name, host, pid, ago.total_seconds(), reason)
        for id, kind, name, host, pid, ago, reason in rows.values_list(
            "id", "kind", "name", "host", "pid", "ago", "dead_reason"
        )[:MAX_LISTED]
    )


def _unknown_tasks(database: str) -> dict[str, int]:
    rows = Job.objects.using(database).filter(state=State.BLOCKED, reason="unknown task")
    counted = rows.values_list("task").annotate(count=Count("id")).order_by("task")[:MAX_LISTED]
    return dict(counted)


def _hints_kind(backend: str) -> str:
    try:
        return hints.kind(backend)
    except InvalidOptions:
        return "unusable"  # a system check says why; jobs run without them
