"""What may be in the way of jobs: facts for `jobqueue.engine.findings`, which judges them.

Every fact costs the same however big the tables are: it is an index entry, a count that stops, a
rollup, or what the server knows anyway.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Now

from jobqueue import hints
from jobqueue.conf import (
    AUDIT_PATIENCE_SECONDS,
    DEADLINE_SLACK_SECONDS,
    LONG_TRANSACTION_SECONDS,
)
from jobqueue.engine.counts import Count, capped_count
from jobqueue.engine.rollup_windows import FAILED
from jobqueue.engine.rollups import MINUTE, lateness
from jobqueue.models import BulkOperation, BulkState, ErrorGroup, Job, Rollup, Worker
from jobqueue.states import State
from jobqueue.storage import Storage
from jobqueue.storage.health import HorizonHolder, IdleSlot, OpenTransaction, TableState

CLOCK_DRIFT_SECONDS = 2.0
"""A worker's clock further off is named: what its code makes of "now" is off as well."""
NEW_DEAD_SECONDS = 3_600.0
"""What died since is new."""
NEW_DEAD_LETTERS = 10
"""New ones from which on they are named: one or two are somebody's data."""
NEW_DEAD_LOOKED_AT = 1_000
"""The newest dead letters among which the error is looked for that killed most of them."""
FAILING_SECONDS = 600.0
"""The time over which tasks are judged by how often they fail."""
FAILING_ATTEMPTS, FAILING_SHARE = 20, 0.5
"""A task is named that fails more often than not, over at least so many attempts."""
BULK_LOOKED_AT, BULK_FAILED_SECONDS = 100, 86_400.0
"""A failed operation is named if it is among so many, and has had a step within so long: what
nobody resumed for a day, nobody wants."""


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers of one version of the code. seconds: since the oldest of them started."""

    version: str
    workers: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Drift:
    """A worker whose clock is off; positive: ahead of the database's."""

    name: str
    host: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TaskFailures:
    """How often a task failed lately, of how many attempts. queue: of its newest error, or ""."""

    task: str
    failed: int
    attempts: int
    queue: str = ""

    @property
    def is_failing(self) -> bool:
        """Whether more often than not, and often enough to tell."""
        return self.attempts >= FAILING_ATTEMPTS and self.failed > FAILING_SHARE * self.attempts


@dataclass(frozen=True, slots=True)
class DeadlyError:
    """The error that killed most of the newest dead letters. task, queue: of the newest of them.

    jobs: how many of the `looked_at`.
    """

    fingerprint: str
    error_class: str
    task: str
    queue: str
    jobs: int
    looked_at: int


@dataclass(frozen=True, slots=True)
class FailedBulk:
    """A bulk operation that failed. left: jobs; seconds: since the last step that did not."""

    number: int
    verb: str
    left: Count
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The facts. served_queues: those that live workers take jobs from; None means every queue.

    new_dead: dead letters of the last hour; deadly: the error of most, None if there are few, or
    none died of one. hints_error: why hints cannot be sent now, or "".
    rollups_late: seconds since the oldest attempt ended that is not in the statistics, 0 if none.
    """

    served_queues: Sequence[str] | None
    crews: Sequence[Crew]
    drifts: Sequence[Drift]
    overdue: int
    new_dead: Count
    deadly: DeadlyError | None
    failed_bulk: Sequence[FailedBulk]
    failing: Sequence[TaskFailures]
    rollups_late: float
    hints_error: str
    horizon: HorizonHolder | None
    open_transactions: Sequence[OpenTransaction]
    table: TableState | None
    idle_slots: Sequence[IdleSlot]


def look(backend: str, database: str, storage: Storage) -> Health:
    """Return how things are on `database` right now."""
    workers = _workers(database, storage)
    patience = DEADLINE_SLACK_SECONDS + AUDIT_PATIENCE_SECONDS
    new_dead = _new_dead(database)
    return Health(
        served_queues=_served_queues(workers),
        crews=_crews(workers),
        drifts=[
            Drift(w.name, w.host, w.clock_ahead)
            for w in workers
            if abs(w.clock_ahead) > CLOCK_DRIFT_SECONDS
        ],
        overdue=len(storage.overdue(patience)),
        new_dead=new_dead,
        deadly=_deadly(database) if new_dead.value >= NEW_DEAD_LETTERS else None,
        failed_bulk=_failed_bulk(database),
        failing=_with_queues(database, task_failures(database)),
        rollups_late=lateness(database),
        hints_error=hints.trouble(backend),
        horizon=storage.horizon_holder(),
        open_transactions=storage.open_transactions(LONG_TRANSACTION_SECONDS),
        table=storage.table_state(),
        idle_slots=storage.idle_slots(),
    )


def _workers(database: str, storage: Storage) -> list[Worker]:
    """Return the worker processes that live."""
    alive = {row.id for row in storage.workers() if row.lease_left >= 0}
    rows = Worker.objects.using(database).filter(dead=False, kind="worker").defer("tasks")
    return [worker for worker in rows.annotate(age=Now() - F("started_at")) if worker.id in alive]


def _served_queues(workers: Sequence[Worker]) -> Sequence[str] | None:
    taking = [worker.queues for worker in workers if not worker.draining]
    if any(not queues for queues in taking):
        return None
    return sorted({queue for queues in taking for queue in queues})


def _crews(workers: Sequence[Worker]) -> list[Crew]:
    ages: defaultdict[str, list[float]] = defaultdict(list)
    for worker in workers:
        ages[worker.version].append(worker.age.total_seconds())  # type: ignore[attr-defined]
    return [Crew(version, len(of), max(of)) for version, of in sorted(ages.items())]


def _died(database: str) -> QuerySet[Job]:
    since = Now() - timedelta(seconds=NEW_DEAD_SECONDS)
    return Job.objects.using(database).filter(state=State.DEAD, finished_at__gt=since)


def _new_dead(database: str) -> Count:
    return capped_count(_died(database).order_by("finished_at"))


def _deadly(database: str) -> DeadlyError | None:
    newest = _died(database).order_by("-finished_at")[:NEW_DEAD_LOOKED_AT]
    rows = list(newest.values_list("error_fingerprint", "error_class", "task", "queue"))
    killed = Counter(row[0] for row in rows if row[0])
    for fingerprint, jobs in killed.most_common(1):
        newest_of_it = next(row for row in rows if row[0] == fingerprint)
        return DeadlyError(*newest_of_it, jobs, len(rows))
    return None


def _failed_bulk(database: str) -> list[FailedBulk]:
    operations = BulkOperation.objects.using(database)
    newest = operations.order_by("-id").values("id")[:BULK_LOOKED_AT]
    since = Now() - timedelta(seconds=BULK_FAILED_SECONDS)
    failed = operations.filter(id__in=newest, state=BulkState.FAILED, stepped_at__gt=since)
    rows = failed.defer("ids").annotate(age=Now() - F("stepped_at")).order_by("id")
    return [
        FailedBulk(
            number=row.pk,
            verb=row.verb,
            left=Count(row.jobs_left, "gte" if row.total_is_capped else "eq"),
            seconds=row.age.total_seconds(),
        )
        for row in rows
    ]


def _with_queues(database: str, failures: Sequence[TaskFailures]) -> list[TaskFailures]:
    """Add to those that fail the queue that they fail in."""
    tasks = [task.task for task in failures if task.is_failing]
    if not tasks:
        return list(failures)
    since = Now() - timedelta(seconds=FAILING_SECONDS)
    seen = ErrorGroup.objects.using(database).filter(last_seen__gt=since, task__in=tasks)
    queues = dict(seen.order_by("last_seen").values_list("task", "queue"))
    return [replace(task, queue=queues.get(task.task, "")) for task in failures]


def task_failures(database: str) -> list[TaskFailures]:
    """Return the tasks of which attempts have failed in the last minutes, by name."""
    rows = (
        Rollup.objects.using(database)
        .filter(
            seconds=MINUTE,
            kind=Rollup.Kind.TASK,
            at__gt=Now() - timedelta(seconds=FAILING_SECONDS + MINUTE),
        )
        .values("name")
        .annotate(
            succeeded=Sum("succeeded"),
            failed=Sum(FAILED),
        )
        .filter(failed__gt=0)
        .order_by("name")
    )
    return [
        TaskFailures(name, failed, succeeded + failed)
        for name, succeeded, failed in rows.values_list("name", "succeeded", "failed")
    ]
