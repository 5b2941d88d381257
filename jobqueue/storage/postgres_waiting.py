"""Jobs that wait, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from jobqueue.storage.postgres_base import PostgresStatements


class PostgresWaiting(PostgresStatements):
    """The protocol's part about jobs that wait."""

    def reschedule_many(
        self,
        ids: Sequence[UUID],
        dues: Sequence[datetime],
        aging_seconds: float,
        now: datetime | None = None,
    ) -> list[UUID]:
        rows = self._rows(
            "reschedule_jobs", ids=list(ids), dues=list(dues), aging=aging_seconds, now=now
        )
        return [row[0] for row in rows]

    def run_now_many(
        self, ids: Sequence[UUID], aging_seconds: float, now: datetime | None = None
    ) -> list[UUID]:
        rows = self._rows("run_jobs_now", ids=list(ids), aging=aging_seconds, now=now)
        return [row[0] for row in rows]

    def reprioritize_many(
        self, ids: Sequence[UUID], priority: int, aging_seconds: float
    ) -> list[UUID]:
        rows = self._rows(
            "reprioritize_jobs", ids=list(ids), priority=priority, aging=aging_seconds
        )
        return [row[0] for row in rows]

    def move_many(self, ids: Sequence[UUID], queue: str) -> list[UUID]:
        return [row[0] for row in self._rows("move_jobs", ids=list(ids), queue=queue)]

    def bulk_waits(self, now: datetime | None = None) -> bool:
        return bool(self._rows("find_bulk", now=now)[0][0])
