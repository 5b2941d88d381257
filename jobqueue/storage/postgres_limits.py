"""Limits on PostgreSQL: keys are advisory locks of the claim's transaction, never waited for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from jobqueue.conf import CLAIM_WINDOW, COMMIT_IDLE_TIMEOUT
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.limits import LimitedClaims
from jobqueue.storage.postgres_base import PostgresStatements
from jobqueue.storage.records import Claim, CodedLimit, Limited, Place, Room
from jobqueue.storage.rows import by_urgency, coded_limit_row, places, turn_of_queues
from jobqueue.storage.statements import statement

_SPACE = 0x6A71
"""First half of the advisory locks of keys; two keys of one hash only pass each other over."""


class PostgresLimits(PostgresStatements, LimitedClaims):
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
        sql = statement(self.vendor, "claim_beside_limited", turn=turn_of_queues(strict))
        rows = self._run(
            sql,
            {
                "worker": worker,
                "queues": list(queues),
                **places(queues, behind),
                "tasks": list(tasks),
                "limit": limit,
                "window": CLAIM_WINDOW,
                "now": now,
            },
        )
        found = [Claim._make(row) for row in rows]
        split = next((n for n, row in enumerate(rows) if row[1] is None), len(rows))  # no fence
        limited = [
            Limited(row.id, row.rank, row.queue, row.limit_key, row.alone) for row in found[split:]
        ]
        return by_urgency(found[:split], queues if strict else None), limited

    def find_limited(
        self,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        behind: Sequence[Place] | None = None,
        alone: bool = False,
        now: datetime | None = None,
    ) -> list[Limited]:
        rows = self._rows(
            "find_limited",
            queues=list(queues),
            **places(queues, behind),
            tasks=list(tasks),
            limit=limit,
            window=CLAIM_WINDOW,
            alone=alone,
            now=now,
        )
        return [Limited._make(row) for row in rows]

    def read_rooms(self, keys: Iterable[str], now: datetime | None = None) -> dict[str, Room]:
        rows = self._rows("read_rooms", keys=list(keys), now=now)
        return {key: Room(*room) for key, *room in rows}

    def claim_limited(
        self,
        worker: UUID,
        chosen: Sequence[Limited],
        queues: Sequence[str],
        now: datetime | None = None,
    ) -> list[Claim]:
        with transaction_on(self.connection):
            return self._claim_locked(worker, chosen, queues, now)

    def _lock_keys(self, keys: list[str]) -> set[str]:
        # In a caller's transaction (a TestCase's) the limit would be the caller's.
        timeout = None if self.connection.in_atomic_block else COMMIT_IDLE_TIMEOUT
        rows = self._rows("try_keys", keys=keys, space=_SPACE, idle_timeout=timeout)
        return {row[0] for row in rows}

    def _first_parked(self, keys: list[str], queues: Sequence[str]) -> dict[str, Place]:
        first: dict[str, Place] = {}
        for key, rank, job_id in self._rows("first_parked", keys=keys, queues=list(queues)):
            place = Place(rank, job_id)
            first[key] = min(first.get(key, place), place)
        return first

    def claim_chosen(
        self, worker: UUID, chosen: Sequence[Limited], now: datetime | None = None
    ) -> list[Claim]:
        rows = self._rows(
            "claim_chosen",
            worker=worker,
            ids=[job.id for job in chosen],
            keys=[job.limit_key for job in chosen],
            queues=[job.queue for job in chosen],
            now=now,
        )
        return by_urgency([Claim._make(row) for row in rows])

    def _record_uses(
        self, used: dict[str, int], parts: dict[str, float], now: datetime | None
    ) -> None:
        keys = sorted(used)
        lengths = [parts[key] for key in keys]
        counts = [used[key] for key in keys]
        self._rows("record_uses", keys=keys, used=counts, lengths=lengths, now=now)
        self._rows("forget_uses", keys=keys, lengths=lengths, now=now)

    # --- park and admit ----------------------------------------

    def park_limited(self, ids: Sequence[UUID]) -> set[str]:
        return {row[0] for row in self._rows("park_limited", ids=list(ids))}

    def admit_limited(
        self, rooms: Mapping[str, int], queues: Sequence[str] | None = None
    ) -> list[tuple[str, str]]:
        rows = self._rows(
            "admit_limited",
            keys=list(rooms),
            rooms=list(rooms.values()),
            queues=None if queues is None else list(queues),
        )
        return [(key, queue) for key, queue in rows]

    def parked_keys(self, after: str, limit: int) -> list[str]:
        return [row[0] for row in self._rows("parked_keys", after=after, limit=limit)]

    def prune_uses(self) -> int:
        return len(self._rows("prune_uses"))

    # --- numbers ----------------------------------------

    def seed_limits(self, limits: Sequence[CodedLimit], sources: Sequence[str]) -> None:
        rows = json.dumps([coded_limit_row(limit) for limit in limits])
        with transaction_on(self.connection):
            self._rows("seed_limits", rows=rows)
            keys = [limit.key for limit in limits]
            self._rows("lift_limits", sources=list(sources), keys=keys)
            self.flag_queues()

    def flag_queues(self) -> None:
        self._rows("flag_queues")
