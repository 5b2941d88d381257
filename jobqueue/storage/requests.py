"""Requests to cancel running jobs, as methods of a storage.

A request is a row of its own: nobody but its worker writes about a running job. Worker, supervisor
and reaper read it with the job (`Held.cancel_reason`); `asked` finds those that ended up waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from jobqueue.storage.records import EndedJob


class RequestStorage:
    """The part of the protocol about requests to cancel."""

    def ask_to_cancel(self, ids: Sequence[UUID], reason: str) -> list[UUID]:
        """Leave a request for those of `ids` that are running; return them. The last one counts."""
        raise NotImplementedError

    def asked(self, limit: int) -> list[tuple[EndedJob, str]]:
        """Return waiting jobs that somebody asked to cancel while they ran, and the reasons."""
        raise NotImplementedError

    def withdraw_requests(self, ids: Sequence[UUID]) -> None:
        """Delete the requests for these jobs."""
        raise NotImplementedError

    def forget_requests(self, older_than_seconds: float, now: datetime | None = None) -> int:
        """Delete old requests whose jobs have ended or are gone; return how many."""
        raise NotImplementedError
