"""Idempotent requests on SQLite: whoever asks holds the write lock, and sees what is kept."""

from __future__ import annotations

import json
from datetime import datetime

from jobqueue.storage.busy import reads, writes
from jobqueue.storage.records import Deed, KeptRequest, RequestKey, StoredAnswer, kept_request
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_values import after


class SQLiteIdempotency(SQLiteStatements):
    """See `jobqueue.storage.idempotency.IdempotencyStorage`."""

    @writes
    def claim_request(
        self, request: RequestKey, keep_seconds: float, now: datetime | None = None
    ) -> int | None:
        clock = self._clock(now)
        times = {"now": clock, "until": after(clock, keep_seconds)}
        rows = self._rows("claim_request", **request._asdict(), **times)
        return rows[0][0] if rows else None

    @reads
    def find_request(self, request: RequestKey) -> KeptRequest | None:
        rows = self._rows("find_request", **request._asdict())
        return kept_request(rows[0]) if rows else None

    @writes
    def keep_answer(self, number: int, answer: StoredAnswer, deed: Deed | None = None) -> None:
        if deed is not None:
            self.record_action(deed)
        headers = json.dumps(dict(answer.headers))
        self._rows(
            "keep_answer", number=number, status=answer.status, headers=headers, body=answer.body
        )

    @writes
    def record_action(self, deed: Deed) -> None:
        self._rows("insert_action", **deed._asdict(), now=self._clock())

    def prune_requests(self, limit: int, now: datetime | None = None) -> int:
        return self._prune_requests(limit, now) if self._find_stale_request(now) else 0

    @reads
    def _find_stale_request(self, now: datetime | None) -> bool:
        return bool(self._rows("find_stale_request", now=self._clock(now)))

    @writes
    def _prune_requests(self, limit: int, now: datetime | None) -> int:
        return self._changed("prune_requests", limit=limit, now=self._clock(now))
