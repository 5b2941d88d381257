"""Limits on SQLite: the write lock holds every key, so what is counted under it is still true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from jobqueue.conf import CLAIM_WINDOW
from jobqueue.limits import QUEUE
from jobqueue.storage.busy import reads, writes
from jobqueue.storage.limits import LimitedClaims
from jobqueue.storage.records import FRONT, Claim, CodedLimit, Limited, Place, Room
from jobqueue.storage.rows import by_urgency, coded_limit_row
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_values import after, microseconds, time_of

PARTS = 60
"""Parts of a period in which starts are counted: a start counts longer by one part at most."""


class SQLiteLimits(SQLiteStatements, LimitedClaims):
    """The protocol's part about limits."""

    # --- claim ----------------------------------------

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
        found = self._find_beside_limited(queues, tasks, limit, behind, now, strict)
        if all(job.keys for job in found):
            return [], found  # nothing to write
        return self._claim_beside_limited(worker, queues, tasks, limit, behind, now, strict)

    @writes
    def _claim_beside_limited(
        self,
        worker: UUID,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        behind: Sequence[Place] | None,
        now: datetime | None,
        strict: bool,
    ) -> tuple[list[Claim], list[Limited]]:
        found = self._find_beside_limited(queues, tasks, limit, behind, now, strict)
        free = [job.id for job in found if not job.keys]
        rows = self._rows("claim_jobs", worker=worker, ids=free, now=self._clock(now))
        claims = [claim_of(row) for row in rows]
        return by_urgency(claims, queues if strict else None), [job for job in found if job.keys]

    @reads
    def _find_beside_limited(
        self,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        behind: Sequence[Place] | None,
        now: datetime | None,
        strict: bool,
    ) -> list[Limited]:
        return self._look("find_beside_limited", queues, tasks, limit, behind, now, strict=strict)

    @reads
    def find_limited(
        self,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        behind: Sequence[Place] | None = None,
        alone: bool = False,
        now: datetime | None = None,
    ) -> list[Limited]:
        return self._look("find_limited", queues, tasks, limit, behind, now, alone=alone)

    def _look(
        self,
        name: str,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        behind: Sequence[Place] | None,
        now: datetime | None,
        *,
        strict: bool = False,
        **more: Any,
    ) -> list[Limited]:
        """Return the best rows of each queue, then the best of all."""
        found: list[tuple[int, int, str, Limited]] = []
        lanes = zip(queues, behind or [FRONT] * len(queues), strict=True)
        for number, (queue, place) in enumerate(lanes):
            rows = self._rows(
                name,
                queue=queue,
                rank=place.rank,
                behind=place.id,
                tasks=list(tasks),
                limit=limit,
                window=CLAIM_WINDOW,
                now=now,
                **more,
            )
            turn = number if strict else 0
            for rank, job_id, key, limited in rows:
                job = Limited(UUID(hex=job_id), rank, queue, key, bool(limited))
                found.append((turn, rank, job_id, job))
        return [job for *_, job in sorted(found, key=lambda each: each[:3])[:limit]]

    @reads
    def read_rooms(self, keys: Iterable[str], now: datetime | None = None) -> dict[str, Room]:
        clock = self._clock(now)
        return {key: self._room(key, clock) for key in keys}

    def _room(self, key: str, clock: datetime) -> Room:
        queue = key.removeprefix(f"{QUEUE}:")
        is_queue = queue != key
        found = self._rows("find_numbers", key=key)
        running, rate, per = found[0] if found else (None if is_queue else 1, None, None)
        places: list[int] = []
        if running is not None:
            count = "count_running_queue" if is_queue else "count_running_key"
            places.append(running - self._rows(count, key=key, queue=queue)[0][0])
        if rate is None:
            return Room(min(places, default=None))
        ((used, oldest),) = self._rows("sum_uses", key=key, since=after(clock, -per))
        places.append(rate - used)
        opens_in = None
        if oldest is not None:
            opens_in = (time_of(oldest) - clock).total_seconds() + per
        return Room(min(places), per / PARTS, opens_in)

    @writes
    def claim_limited(
        self,
        worker: UUID,
        chosen: Sequence[Limited],
        queues: Sequence[str],
        now: datetime | None = None,
    ) -> list[Claim]:
        return self._claim_locked(worker, chosen, queues, now)

    def _lock_keys(self, keys: list[str]) -> set[str]:
        return set(keys)

    def _first_parked(self, keys: list[str], queues: Sequence[str]) -> dict[str, Place]:
        first: dict[str, Place] = {}
        for key in keys:
            for queue in queues:
                for rank, job_id in self._rows("find_first_parked", key=key, queue=queue):
                    place = Place(rank, UUID(hex=job_id))
                    first[key] = min(first.get(key, place), place)
        return first

    @writes
    def claim_chosen(
        self, worker: UUID, chosen: Sequence[Limited], now: datetime | None = None
    ) -> list[Claim]:
        given = [{"id": j.id.hex, "queue": j.queue, "key": j.limit_key} for j in chosen]
        rows = self._rows("claim_chosen", worker=worker, rows=given, now=self._clock(now))
        return by_urgency([claim_of(row) for row in rows])

    def _record_uses(
        self, used: dict[str, int], parts: dict[str, float], now: datetime | None
    ) -> None:
        clock = self._clock(now)
        for key, count in used.items():
            length = max(round(parts[key] * 1_000_000), 1)
            part = microseconds(clock) // length * length
            self._rows("record_use", key=key, part=part, used=count, now=clock)
            self._rows("forget_uses", key=key, until=after(clock, -parts[key] * PARTS))

    # --- park and admit ----------------------------------------

    @writes
    def park_limited(self, ids: Sequence[UUID]) -> set[str]:
        return {row[0] for row in self._rows("park_limited", ids=list(ids))}

    def admit_limited(
        self, rooms: Mapping[str, int], queues: Sequence[str] | None = None
    ) -> list[tuple[str, str]]:
        return self._admit_limited(rooms, queues) if self._find_admissible(rooms, queues) else []

    @writes
    def _admit_limited(
        self, rooms: Mapping[str, int], queues: Sequence[str] | None
    ) -> list[tuple[str, str]]:
        ids = self._find_admissible(rooms, queues)
        return [(key, queue) for key, queue in self._rows("admit_limited", ids=ids)]

    @reads
    def _find_admissible(self, rooms: Mapping[str, int], queues: Sequence[str] | None) -> list[str]:
        """Return ids of the parked among the first jobs of each key, so many as it has room."""
        found: list[str] = []
        for key, room in rooms.items():
            first = [
                row
                for state in ("blocked", "ready")
                for queue in self._lanes(key, state)
                if queues is None or queue in queues
                for row in self._rows(
                    "find_first_of_lane", key=key, state=state, queue=queue, limit=room
                )
            ]
            found += [job_id for _, job_id, state in sorted(first)[:room] if state == "blocked"]
        return found

    def _lanes(self, key: str, state: str) -> Iterable[str]:
        queue: str | None = ""
        while (
            queue := self._rows("find_lane", key=key, state=state, after=queue)[0][0]
        ) is not None:
            yield queue

    @reads
    def parked_keys(self, after: str, limit: int) -> list[str]:
        found: list[str] = []
        while len(found) < limit and (rows := self._rows("parked_key", after=after)):
            after = rows[0][0]
            found.append(after)
        return found

    @writes
    def prune_uses(self) -> int:
        longest = self._rows("longest_period")[0][0]
        return self._changed("prune_uses", until=after(self._clock(), -longest))

    # --- numbers ----------------------------------------

    @writes
    def seed_limits(self, limits: Sequence[CodedLimit], sources: Sequence[str]) -> None:
        self._each("seed_limit", [coded_limit_row(limit) for limit in limits])
        keys = [limit.key for limit in limits]
        self._rows("lift_limits", sources=list(sources), keys=keys)
        self.flag_queues()

    @writes
    def flag_queues(self) -> None:
        self._rows("flag_queues")


def claim_of(row: tuple[Any, ...]) -> Claim:
    """Return a claimed row of SQLite as a Claim."""
    claim = Claim._make(row)
    return claim._replace(
        id=UUID(hex=row[0]),
        worker=UUID(hex=row[2]),
        timeout=float(claim.timeout),  # RETURNING forgets that the column is real
        alone=bool(claim.alone),
        claimed=time_of(row[12]).timestamp(),
    )
