"""Old jobs, as methods of a storage: finding them, deleting them, forgetting their arguments.

A walk goes up the primary key, once: ids grow with the time of enqueue, so the oldest come first,
and it ends where everything is too young. One look reads a bounded number of rows, and what it
found is changed in a transaction of its own: nobody waits for it, and no rare queue makes it read
the table again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from jobqueue.storage.records import AgeRule, Look

FIRST_ID = UUID(int=0)
"""Where a walk begins."""


class RetentionStorage:
    """The part of the protocol about old jobs."""

    def find_old(
        self,
        rules: Sequence[AgeRule],
        after: UUID,
        window: int,
        limit: int,
        *,
        unscrubbed: bool = False,
    ) -> Look:
        """Look at the `window` jobs after an id for those that ended longer ago than their rule.

        The rule of a job is that of its state and queue, else that of its state alone; without one
        it is kept. Return up to `limit` of them. unscrubbed: only those that have arguments.
        """
        raise NotImplementedError

    def prune(self, ids: Sequence[UUID], older_than_seconds: float) -> list[str]:
        """Delete those that ended longer ago, with all that belongs to them; return their states.

        What has moved on since it was found, or is locked, is left alone.
        """
        raise NotImplementedError

    def scrub_arguments(self, ids: Sequence[UUID], older_than_seconds: float) -> int:
        """Replace the arguments of those that succeeded or were cancelled longer ago.

        Return how many. What has moved on, or is locked, is left alone.
        """
        raise NotImplementedError

    def prune_workers(self, older_than_seconds: float) -> int:
        """Delete rows of workers dead for long that hold no job; return how many."""
        raise NotImplementedError

    def prune_actions(self, limit: int, older_than_seconds: float) -> int:
        """Delete up to `limit` Action rows written longer ago, not locked ones; return how many."""
        raise NotImplementedError


def youngest(rules: Sequence[AgeRule]) -> float:
    """Return the shortest time after which anything is old; infinite where nothing ever is."""
    return min((rule.seconds for rule in rules if rule.seconds is not None), default=float("inf"))


def next_after(found: Sequence[UUID], limit: int, seen: int, window: int, last: UUID | None,
               all_young: bool) -> UUID | None:  # fmt: skip
    """Return where the walk goes on after one look; None at its end."""
    if len(found) == limit:
        return found[-1]
    return None if seen < window or all_young else last
