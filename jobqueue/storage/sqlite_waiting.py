"""Jobs that wait, on SQLite. Due times and ranks come from one reading of the clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from jobqueue.storage.busy import reads, writes
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_moving import due_row
from jobqueue.storage.sqlite_values import microseconds


class SQLiteWaiting(SQLiteStatements):
    """The protocol's part about jobs that wait."""

    @writes
    def reschedule_many(
        self,
        ids: Sequence[UUID],
        dues: Sequence[datetime],
        aging_seconds: float,
        now: datetime | None = None,
    ) -> list[UUID]:
        clock = self._clock(now)
        jobs = [due_row(job_id, due, clock) for job_id, due in zip(ids, dues, strict=True)]
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


def _ids(rows: list[tuple[Any, ...]]) -> list[UUID]:
    return [UUID(hex=row[0]) for row in rows]
