"""Jobs that wait, on SQLite. Due times and ranks come from one reading of the clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from jobqueue.storage.busy import reads, writes
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_values import microseconds, time_text


class SQLiteWaiting(SQLiteStatements):
    """The protocol's part about jobs that wait, and about those that shall wait again."""

    @writes
    def requeue_many(
        self,
        ids: Sequence[UUID],
        aging_seconds: float,
        dues: Sequence[datetime] | None = None,
        now: datetime | None = None,
    ) -> list[UUID]:
        clock = self._clock(now)
        jobs = _due_rows(ids, [clock] * len(ids) if dues is None else dues, clock)
        return _ids(self._rows("requeue_jobs", jobs=jobs, aging=aging_seconds))

    @writes
    def reschedule_many(
        self,
        ids: Sequence[UUID],
        dues: Sequence[datetime],
        aging_seconds: float,
        now: datetime | None = None,
    ) -> list[UUID]:
        jobs = _due_rows(ids, dues, self._clock(now))
        return _ids(self._rows("reschedule_jobs", jobs=jobs, aging=aging_seconds))

    @writes
    def run_now_many(
        self, ids: Sequence[UUID], aging_seconds: float, now: datetime | None = None
    ) -> list[UUID]:
        clock = self._clock(now)
        rows = self._rows(
            "run_jobs_now",
            ids=list(ids),
            now=clock,
            now_rank=microseconds(clock),
            aging=aging_seconds,
        )
        return _ids(rows)

    @writes
    def reprioritize_many(
        self, ids: Sequence[UUID], priority: int, aging_seconds: float
    ) -> list[UUID]:
        rows = self._rows(
            "reprioritize_jobs", ids=list(ids), priority=priority, aging=aging_seconds
        )
        return _ids(rows)

    @writes
    def move_many(self, ids: Sequence[UUID], queue: str) -> list[UUID]:
        return _ids(self._rows("move_jobs", ids=list(ids), queue=queue))

    @reads
    def bulk_waits(self, now: datetime | None = None) -> bool:
        return bool(self._rows("find_bulk", now=self._clock(now))[0][0])


def _due_rows(
    ids: Sequence[UUID], dues: Sequence[datetime], clock: datetime
) -> list[tuple[str, str, int, bool]]:
    """Return for each job: id, due time, due time in microseconds, whether it is due now."""
    rows = []
    for job_id, due in zip(ids, dues, strict=True):
        moment = max(due, clock)
        rows.append((job_id.hex, time_text(moment), microseconds(moment), moment == clock))
    return rows


def _ids(rows: list[tuple[Any, ...]]) -> list[UUID]:
    return [UUID(hex=row[0]) for row in rows]
