"""Limits in storage: claim under locked keys, park what is full, admit what has room again.

Decided at claim time only. `claim_limited` locks the keys (on SQLite: the database) in one
statement and counts in the next, so that two claims never count past each other. What is running
is counted, never kept: a key is as free as the rows say, whatever died. Only starts under a rate
are noted, in the transaction of the claim that makes them.

Parking and admitting need no lock, only an order: whoever parks asks for room once more after its
commit, whoever ends a job admits after its commit. So of a job that ends while another is parked
for it, the later one of the two sees the other.

What a process leaves behind that dies …
- in `claim_limited`: nothing; a frozen one loses its session, and with it the keys, after 5 s.
- after it: running jobs, taken back as all are, whose places are free with that.
- between parking and asking again, or between ending a job and admitting: parked jobs although
  there is room. The sweep of any worker that serves their queue admits them (each poll).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from jobqueue.limits import queue_key
from jobqueue.storage.records import Claim, CodedLimit, Limited, Place, Room


class LimitStatements:
    """What the protocol says about limits; `jobqueue.storage.Storage` inherits it."""

    # --- claim: own connection ----------------------------------------

    def claim_beside_limited(
        self,
        worker: UUID,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        behind: Sequence[Place] | None = None,
        now: datetime | None = None,
        strict: bool = False,
    ) -> tuple[list[Claim], list[Limited]]:
        """Claim as `claim_many` does, but let jobs with a limit take part in the order.

        Of the `limit` most urgent jobs those without a limit are claimed, and those with one
        returned, the most urgent first.
        """
        raise NotImplementedError

    def find_limited(
        self,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        behind: Sequence[Place] | None = None,
        alone: bool = False,
        now: datetime | None = None,
    ) -> list[Limited]:
        """Return up to `limit` ready jobs with a limit from the claim windows, by rank.

        alone: suspects that must run alone, instead of all others.
        """
        raise NotImplementedError

    def read_rooms(self, keys: Iterable[str], now: datetime | None = None) -> dict[str, Room]:
        """Return how many jobs of each key may start."""
        raise NotImplementedError

    def claim_limited(
        self,
        worker: UUID,
        chosen: Sequence[Limited],
        queues: Sequence[str],
        now: datetime | None = None,
    ) -> list[Claim]:
        """Claim those of `chosen` whose keys nobody holds and have room; one transaction.

        None starts before a parked job of the same key that stands ahead of it in one of `queues`.
        """
        raise NotImplementedError

    def claim_chosen(
        self, worker: UUID, chosen: Sequence[Limited], now: datetime | None = None
    ) -> list[Claim]:
        """Claim those of `chosen` that are still ready and as they were, whatever their limits.

        For `claim_limited`, which holds and has counted their keys, and for tests, where nothing
        runs beside.
        """
        raise NotImplementedError

    # --- park and admit: own connection, each a transaction of its own --------------------------

    def park_limited(self, ids: Sequence[UUID]) -> set[str]:
        """Block these jobs if they are ready; return the keys of those that were.

        Whoever calls this then admits for the same keys: room may have come meanwhile.
        """
        raise NotImplementedError

    def admit_limited(
        self, rooms: Mapping[str, int], queues: Sequence[str] | None = None
    ) -> list[tuple[str, str]]:
        """Make parked jobs ready, so many of each key that with those already ready its room is
        filled, in the order of rank; return the key and the queue of each.

        queues: only these count and are admitted; None: all. Paused ones never.
        """
        raise NotImplementedError

    def parked_keys(self, after: str, limit: int) -> list[str]:
        """Return up to `limit` keys that parked jobs have, in order, from behind `after`."""
        raise NotImplementedError

    def prune_uses(self) -> int:
        """Delete starts that count under no rate any more; return how many rows."""
        raise NotImplementedError

    # --- numbers ----------------------------------------

    def seed_limits(self, limits: Sequence[CodedLimit], sources: Sequence[str]) -> None:
        """Write down what the code says, and lift what it no longer says; one transaction.

        sources: the tasks and the alias whose whole code this is. Numbers that an operator has
        set hold on.
        """
        raise NotImplementedError

    def flag_queues(self) -> None:
        """Mark the queues that have a limit, for the claim; in the transaction that changed it."""
        raise NotImplementedError


class LimitedClaims(LimitStatements):
    """How a claim under limits goes, on any database, inside the transaction that holds the keys.

    The vendors supply the statements.
    """

    def _lock_keys(self, keys: list[str]) -> set[str]:
        """Return those of `keys` that nobody else has locked; now they are ours."""
        raise NotImplementedError

    def _first_parked(self, keys: list[str], queues: Sequence[str]) -> dict[str, Place]:
        raise NotImplementedError

    def _record_uses(
        self, used: dict[str, int], parts: dict[str, float], now: datetime | None
    ) -> None:
        raise NotImplementedError

    def _claim_locked(
        self, worker: UUID, chosen: Sequence[Limited], queues: Sequence[str], now: datetime | None
    ) -> list[Claim]:
        keys = self._lock_keys(sorted({key for job in chosen for key in job.keys}))
        free = [job for job in chosen if keys.issuperset(job.keys)]
        if not free:
            return []
        rooms = self.read_rooms(keys, now)
        own = sorted({job.limit_key for job in free if job.limit_key is not None})
        parked = self._first_parked(own, queues) if own else {}
        first = [
            job
            for job in free
            if job.limit_key not in parked or (job.rank, job.id) < parked[job.limit_key]
        ]
        claims = self.claim_chosen(worker, fitting(first, rooms, len(first)), now)
        self._note_starts(claims, rooms, now)
        return claims

    def _note_starts(
        self, claims: list[Claim], rooms: Mapping[str, Room], now: datetime | None
    ) -> None:
        """Note the starts of keys and queues that have a rate."""
        parts = {key: room.part_seconds for key, room in rooms.items() if room.part_seconds}
        if not parts:
            return
        keys = [key for c in claims for key in (c.limit_key or "", queue_key(c.queue))]
        used = Counter(key for key in keys if key in parts)
        if used:
            self._record_uses(used, parts, now)


def fitting(jobs: Iterable[Limited], rooms: Mapping[str, Room], most: int) -> list[Limited]:
    """Return the first of `jobs` that fit together into the rooms of all their keys."""
    left = {key: room.places for key, room in rooms.items()}
    chosen: list[Limited] = []
    for job in jobs:
        places = [left[key] for key in job.keys]
        if len(chosen) == most:
            break
        if any(place is not None and place <= 0 for place in places):
            continue
        chosen.append(job)
        for key, place in zip(job.keys, places, strict=True):
            if place is not None:
                left[key] = place - 1
    return chosen
