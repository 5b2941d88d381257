"""Requests to cancel running jobs, on SQLite.

Like every write a request waits for the one write lock: an atomic job that has begun holds it to
its end, and so do its own requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from jobqueue.storage.busy import reads, writes
from jobqueue.storage.records import EndedJob
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_values import after


class SQLiteRequests(SQLiteStatements):
    """The protocol's part about requests to cancel."""

    @writes
    def ask_to_cancel(self, ids: Sequence[UUID], reason: str) -> list[UUID]:
        now = self._clock()
        rows = self._rows("ask_to_cancel", ids=list(ids), reason=reason[:64], now=now)
        return [UUID(hex=row[0]) for row in rows]

    @reads
    def asked(self, limit: int) -> list[tuple[EndedJob, str]]:
        return [
            (EndedJob(UUID(hex=job_id), backend, task), reason)
            for job_id, backend, task, reason in self._rows("find_asked", limit=limit)
        ]

    @writes
    def withdraw_requests(self, ids: Sequence[UUID]) -> None:
        self._rows("withdraw_requests", ids=list(ids))

    def forget_requests(self, older_than_seconds: float, now: datetime | None = None) -> int:
        ids = self._find_stale(older_than_seconds, now)
        if ids:
            self.withdraw_requests(ids)
        return len(ids)

    @reads
    def _find_stale(self, older_than_seconds: float, now: datetime | None) -> list[UUID]:
        before = after(self._clock(now), -older_than_seconds)
        return [UUID(hex=row[0]) for row in self._rows("find_stale_requests", before=before)]
