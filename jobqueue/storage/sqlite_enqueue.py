"""Making jobs on SQLite, unique ones too: whoever enqueues holds the write lock.

So what an enqueue sees of twins stays true until it ends: nothing needs to be locked or waited
for, and no conflict arises that was not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from jobqueue.conf import TWIN_PATIENCE_SECONDS
from jobqueue.storage.busy import immediate_on, persistently, reads, writes
from jobqueue.storage.connections import is_open, undoable_on
from jobqueue.storage.records import EndedJob, Inserted, NewJob, Starved, Twin
from jobqueue.storage.rows import new_job_row
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_values import after, microseconds, time_of


class SQLiteEnqueue(SQLiteStatements):
    """The protocol's parts for making jobs."""

    @writes
    def insert_jobs(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Inserted]:
        clock = self._clock(now)
        inserted = [_inserted(job, clock) for job in jobs]
        self._each(
            "insert_job", [_job_parameters(*pair) for pair in zip(jobs, inserted, strict=True)]
        )
        self._each("insert_tag", [{"job": job.id, "tag": tag} for job in jobs for tag in job.tags])
        return inserted

    # --- unique jobs ----------------------------------------

    def bounded[R](self, run: Callable[[], R], wait_seconds: float) -> R:
        """Return ``run()``, under the write lock if the transaction is ours; KeyBusy never."""
        if is_open(self.connection):
            with undoable_on(self.connection):
                return run()

        def once() -> R:
            with immediate_on(self.connection):
                return run()

        return persistently(once)

    @writes
    def insert_unique(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Inserted]:
        held = {(job.task, job.unique_key): job.task for job in jobs}
        for task in {job.task for job in jobs}:
            keys = [key for known, key in held if known == task and key is not None]
            for twin in self.find_twins(task, keys, now):
                del held[task, twin.key]
        return self.insert_jobs([job for job in jobs if (job.task, job.unique_key) in held], now)

    @reads
    def find_twins(
        self, task: str, keys: Collection[str], now: datetime | None = None
    ) -> list[Twin]:
        clock = self._clock(now)
        overdue = after(clock, -TWIN_PATIENCE_SECONDS)
        rows = self._rows("find_twins", task=task, keys=list(keys), overdue=overdue, now=clock)
        return [Twin(row[0], _inserted_as(row[1:5]), *map(bool, row[5:8])) for row in rows]

    def lock_twins(self, ids: Collection[UUID], *, alone: bool) -> set[UUID]:
        return set(ids)

    def find_starved(
        self, queues: Sequence[str], tasks: Sequence[str], now: datetime | None = None
    ) -> Starved | None:
        """Return None: there are no row locks."""
        return None

    def wait_in_line(self, job_id: UUID) -> bool:
        return True

    @writes
    def replace_twins(
        self, changes: Mapping[UUID, NewJob], now: datetime | None = None
    ) -> list[Inserted]:
        return self._change_twins("replace_twin", changes, now)

    @writes
    def reschedule_twins(
        self, changes: Mapping[UUID, NewJob], now: datetime | None = None
    ) -> list[Inserted]:
        return self._change_twins("reschedule_twin", changes, now)

    @writes
    def expire_twins(self, ids: Collection[UUID], now: datetime | None = None) -> list[EndedJob]:
        rows = self._rows("expire_twins", ids=list(ids), now=self._clock(now))
        return [EndedJob(UUID(hex=row[0]), row[1], row[2]) for row in rows]

    @writes
    def lapse_windows(self, ids: Collection[UUID], now: datetime | None = None) -> None:
        self._rows("lapse_windows", ids=list(ids), now=self._clock(now))

    def _change_twins(
        self, name: str, changes: Mapping[UUID, NewJob], now: datetime | None
    ) -> list[Inserted]:
        clock = self._clock(now)
        changed = []
        for twin, job in changes.items():
            due = _inserted(job, clock).run_at
            times = {"due": due, "ranked": microseconds(max(due, clock)), "now": clock}
            row = new_job_row(0, job) | {"twin": twin, "expires_at": _expiry(job, clock)}
            changed += self._rows(name, **row, **times)
        return [_inserted_as(row) for row in changed]


def _inserted(job: NewJob, clock: datetime) -> Inserted:
    if job.delay is not None:
        due = after(clock, job.delay)
    else:
        due = clock if job.run_at is None else time_of(job.run_at)
    state = "blocked" if job.blocked else "scheduled" if due > clock else "ready"
    return Inserted(job.id, state, due, clock)


def _inserted_as(row: Sequence[Any]) -> Inserted:
    return Inserted(UUID(hex=row[0]), row[1], time_of(row[2]), time_of(row[3]))


def _job_parameters(job: NewJob, inserted: Inserted) -> dict[str, Any]:
    clock = inserted.enqueued_at
    due = max(inserted.run_at, clock)
    window = job.unique_window
    return {
        **new_job_row(0, job),
        "state": inserted.state,
        "run_at": inserted.run_at,
        "enqueued_at": clock,
        "expires_at": _expiry(job, clock),
        "rank": microseconds(due) - round(job.priority * job.aging_seconds * 1_000_000),
        "schedule": job.schedule,
        "tick": job.tick,
        "reason": job.blocked,
        "unique_key": job.unique_key,
        "unique_until": job.unique_until,
        "unique_window_end": None if window is None else after(clock, window),
    }


def _expiry(job: NewJob, clock: datetime) -> datetime | None:
    return after(clock, job.expires_in) if job.expires_in else job.expires_at
