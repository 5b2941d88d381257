"""Idempotent requests, as methods of a storage: a key is claimed, later its answer is kept.

All of one request runs in one transaction, which `jobqueue.engine.idempotency` opens and ends; the
unique index over caller, route and key decides who is first. On SQLite a request holds the write
lock from its beginning, so the others stand in line before they see anything.
"""

from __future__ import annotations

from datetime import datetime

from jobqueue.storage.records import Deed, KeptRequest, RequestKey, StoredAnswer


class IdempotencyStorage:
    """The part of the protocol about idempotent requests."""

    def begin_request(self) -> None:
        """Prepare a transaction that has just begun: READ COMMITTED, every wait bounded.

        Also the wait for the process itself: one that is frozen loses its session, and with it
        what it has claimed, after some seconds. Does nothing where there is no such thing.
        """

    def claim_request(
        self, request: RequestKey, keep_seconds: float, now: datetime | None = None
    ) -> int | None:
        """Make the key's row, without an answer; return its number, None if there is one.

        Waits for a transaction that is about to make or delete it. Raise OperationalError, with
        the code for a lock not available, if that takes longer than `begin_request` allows.
        """
        raise NotImplementedError

    def find_request(self, request: RequestKey) -> KeptRequest | None:
        """Return what is kept under the key, None if it has gone."""
        raise NotImplementedError

    def keep_answer(self, number: int, answer: StoredAnswer, deed: Deed | None = None) -> None:
        """Write the answer into a row that this transaction has claimed; and the Action row."""
        raise NotImplementedError

    def record_action(self, deed: Deed) -> None:
        """Write an Action row, where there is no answer to keep."""
        raise NotImplementedError

    def prune_requests(self, limit: int, now: datetime | None = None) -> int:
        """Delete up to `limit` keys whose time is over, not locked ones; return how many."""
        raise NotImplementedError
