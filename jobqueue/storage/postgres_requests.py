"""Requests to cancel running jobs, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from jobqueue.storage.postgres_base import PostgresStatements
from jobqueue.storage.records import EndedJob


class PostgresRequests(PostgresStatements):
    """The protocol's part about requests to cancel."""

    def ask_to_cancel(self, ids: Sequence[UUID], reason: str) -> list[UUID]:
        return [r[0] for r in self._rows("ask_to_cancel", ids=list(ids), reason=reason[:64])]

    def asked(self, limit: int) -> list[tuple[EndedJob, str]]:
        return [(EndedJob(*row[:3]), row[3]) for row in self._rows("find_asked", limit=limit)]

    def withdraw_requests(self, ids: Sequence[UUID]) -> None:
        self._rows("withdraw_requests", ids=list(ids))

    def forget_requests(self, older_than_seconds: float, now: datetime | None = None) -> int:
        return len(self._rows("forget_requests", age=older_than_seconds, now=now))
