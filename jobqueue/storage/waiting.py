"""The protocol's part about jobs that wait: other due times, priorities and queues.

All are compare-and-set in one statement: a row that is locked, or no longer waits, is left alone
and not returned. A running job is never touched. A job that is blocked stays blocked unless it is
made due later: what it waits for decides, not an operator, and is looked at when it is due.

Beside them the question whether an operation on many of them is to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID


class WaitingProtocol:
    """What may be changed about jobs that wait; each returns the ids that it changed."""

    def reschedule_many(
        self,
        ids: Sequence[UUID],
        dues: Sequence[datetime],
        aging_seconds: float,
        now: datetime | None = None,
    ) -> list[UUID]:
        """Make each job due at its time in `dues`; a time that has passed means now.

        A blocked job that is made due later is scheduled, and blocked again then if it must be;
        one with unfinished parents, or made due now, stays blocked.
        """
        raise NotImplementedError

    def run_now_many(
        self, ids: Sequence[UUID], aging_seconds: float, now: datetime | None = None
    ) -> list[UUID]:
        """Make jobs due now; one that has been due for longer keeps its place."""
        raise NotImplementedError

    def reprioritize_many(
        self, ids: Sequence[UUID], priority: int, aging_seconds: float
    ) -> list[UUID]:
        """Give jobs another priority, and the rank they would have had with it from the start."""
        raise NotImplementedError

    def move_many(self, ids: Sequence[UUID], queue: str) -> list[UUID]:
        """Put jobs into another queue, at the place that their rank gives them there."""
        raise NotImplementedError

    def bulk_waits(self, now: datetime | None = None) -> bool:
        """Return whether a bulk operation has a step to be carried out now."""
        raise NotImplementedError
