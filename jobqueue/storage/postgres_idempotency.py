"""Idempotent requests on PostgreSQL: INSERT … ON CONFLICT waits for whoever is first."""

from __future__ import annotations

import json
from datetime import datetime

from jobqueue.conf import REQUEST_IDLE_SECONDS, REQUEST_WAIT_SECONDS
from jobqueue.storage.postgres_base import PostgresStatements
from jobqueue.storage.records import Deed, KeptRequest, RequestKey, StoredAnswer, kept_request
from jobqueue.storage.statements import statement


class PostgresIdempotency(PostgresStatements):
    """See `jobqueue.storage.idempotency.IdempotencyStorage`."""

    def begin_request(self) -> None:
        sql = statement(
            self.vendor,
            "begin_request",
            lock_wait=str(int(REQUEST_WAIT_SECONDS * 1000)),
            idle=str(int(REQUEST_IDLE_SECONDS * 1000)),
        )
        with self.connection.cursor() as cursor:
            # Without parameters psycopg sends it as it is, several statements in one round trip.
            cursor.execute(sql)

    def claim_request(
        self, request: RequestKey, keep_seconds: float, now: datetime | None = None
    ) -> int | None:
        rows = self._rows("claim_request", **request._asdict(), keep=keep_seconds, now=now)
        return rows[0][0] if rows else None

    def find_request(self, request: RequestKey) -> KeptRequest | None:
        rows = self._rows("find_request", **request._asdict())
        return kept_request(rows[0]) if rows else None

    def keep_answer(self, number: int, answer: StoredAnswer, deed: Deed | None = None) -> None:
        name = "keep_answer" if deed is None else "keep_answer_of_action"
        self._rows(
            name,
            number=number,
            status=answer.status,
            headers=json.dumps(dict(answer.headers)),
            body=answer.body,
            **({} if deed is None else deed._asdict()),
        )

    def record_action(self, deed: Deed) -> None:
        self._rows("insert_action", **deed._asdict())

    def prune_requests(self, limit: int, now: datetime | None = None) -> int:
        return len(self._rows("prune_requests", limit=limit, now=now))
