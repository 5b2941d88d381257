"""Storage on SQLite: statements of ``sql/sqlite/``, several a method, one writer at a time.

SQLite has neither a writing CTE nor row locks. A method that writes runs its statements in one
transaction that takes the write lock first (`jobqueue.storage.busy`); there the row count of the
guarded UPDATE is the guard, and LeaseLost is raised in Python. Nothing is pipelined here, so no
COMMIT can be queued behind it. A claim or a sweep looks before it locks: an idle worker never
asks for the write lock.

Differences from PostgreSQL:

- a worker lives as long as its process holds the lock of its life file, never by time
  (`jobqueue.storage.life_file`); a database in memory belongs to one process, which is alive;
- there are no locks of rows to pass over, no sessions to end and no notifications;
- a step is recorded only outside the job's own transaction, which holds the only write lock;
- times have milliseconds; jobs of the same rank go by id.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from jobqueue.conf import CLAIM_WINDOW
from jobqueue.storage.busy import reads, writes
from jobqueue.storage.records import (
    FRONT,
    Claim,
    EndedJob,
    Held,
    Place,
    Success,
    Verdict,
    Window,
)
from jobqueue.storage.rows import (
    by_urgency,
    lease_errors,
    lease_lost,
)
from jobqueue.storage.sqlite_idempotency import SQLiteIdempotency
from jobqueue.storage.sqlite_limits import SQLiteLimits, claim_of
from jobqueue.storage.sqlite_moving import SQLiteMoving
from jobqueue.storage.sqlite_operators import SQLiteOperators
from jobqueue.storage.sqlite_reports import SQLiteReports
from jobqueue.storage.sqlite_requests import SQLiteRequests
from jobqueue.storage.sqlite_retention import SQLiteRetention
from jobqueue.storage.sqlite_schedules import SQLiteSchedules
from jobqueue.storage.sqlite_values import after

_NO_ERROR = {"error_class": None, "error_message": None, "error_fingerprint": None}


class SQLiteStorage(
    SQLiteIdempotency,
    SQLiteMoving,
    SQLiteReports,
    SQLiteRequests,
    SQLiteRetention,
    SQLiteSchedules,
    SQLiteOperators,
    SQLiteLimits,
):
    """Storage on SQLite 3.35 and newer."""

    # --- claim ----------------------------------------

    def claim_many(
        self,
        worker: UUID,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        behind: Sequence[Place] | None = None,
        now: datetime | None = None,
        strict: bool = False,
    ) -> list[Claim]:
        lanes = list(zip(queues, behind or [FRONT] * len(queues), strict=True))
        if not self._find_candidates(lanes, tasks, 1, strict, now):
            return []
        claims = self._claim_candidates(worker, lanes, tasks, limit, now, strict)
        return by_urgency(claims, queues if strict else None)

    @writes
    def _claim_candidates(
        self,
        worker: UUID,
        lanes: Sequence[tuple[str, Place]],
        tasks: Sequence[str],
        limit: int,
        now: datetime | None,
        strict: bool,
    ) -> list[Claim]:
        ids = self._find_candidates(lanes, tasks, limit, strict, now)
        return self._claim(worker, ids, now)

    @reads
    def _find_candidates(
        self,
        lanes: Sequence[tuple[str, Place]],
        tasks: Sequence[str],
        limit: int,
        strict: bool,
        now: datetime | None,
    ) -> list[str]:
        """Return ids of the best ready rows: each lane's first in rank order, the best of all.

        strict: the order of the lanes goes before rank.
        """
        found: list[tuple[int, int, str]] = []
        for number, (queue, place) in enumerate(lanes):
            rows = self._rows(
                "find_ready",
                queue=queue,
                rank=place.rank,
                behind=place.id,
                tasks=list(tasks),
                window=CLAIM_WINDOW,
                limit=limit,
                now=now,
            )
            found += [(number if strict else 0, rank, job_id) for rank, job_id in rows]
        return [job_id for _, _, job_id in sorted(found)[:limit]]

    def claim_alone(
        self, worker: UUID, queues: Sequence[str], tasks: Sequence[str], now: datetime | None = None
    ) -> list[Claim]:
        if not self._find_alone(queues, tasks, now):
            return []
        return self._claim_alone(worker, queues, tasks, now)

    @writes
    def _claim_alone(
        self, worker: UUID, queues: Sequence[str], tasks: Sequence[str], now: datetime | None
    ) -> list[Claim]:
        return self._claim(worker, self._find_alone(queues, tasks, now), now)

    @reads
    def _find_alone(
        self, queues: Sequence[str], tasks: Sequence[str], now: datetime | None
    ) -> list[str]:
        rows = self._rows("find_alone", queues=list(queues), tasks=list(tasks), now=now)
        return [row[0] for row in rows]

    def _claim(self, worker: UUID, ids: list[str], now: datetime | None) -> list[Claim]:
        rows = self._rows("claim_jobs", worker=worker, ids=ids, now=self._clock(now))
        return [claim_of(row) for row in rows]

    @reads
    def alone_waiting(self, queues: Sequence[str], tasks: Sequence[str]) -> int:
        return int(self._rows("count_alone", queues=list(queues), tasks=list(tasks))[0][0])

    @reads
    def read_windows(
        self, queues: Sequence[str], behind: Sequence[Place], tasks: Sequence[str]
    ) -> list[Window]:
        read = partial(self._rows, "read_windows", tasks=list(tasks), window=CLAIM_WINDOW)
        lanes = zip(queues, behind, strict=True)
        rows = [read(queue=q, rank=p.rank, behind=p.id)[0] for q, p in lanes]
        return [
            Window(
                bool(usable), None if rank is None else Place(rank, UUID(hex=last)), bool(limited)
            )
            for usable, limited, rank, last in rows
        ]

    @reads
    def live_queues(self) -> list[str]:
        return [row[0] for row in self._rows("live_queues")]

    # --- ends of an attempt ----------------------------------------

    @writes
    def finish_one(self, claim: Claim, result: str, started_ago: float) -> None:
        """Finish `claim` inside the job's own transaction: the row count is the guard here."""
        success = Success(claim.id, claim.fence, result, started_ago, 0.0)
        with lease_errors(claim):
            rows = self._finish(claim.worker, success, self._clock())
        if len(rows) != 1:
            raise lease_lost(claim)

    @writes
    def finish_many(self, worker: UUID, successes: Sequence[Success]) -> list[tuple[UUID, int]]:
        clock = self._clock()
        return [(s.id, s.fence) for s in successes if not self._finish(worker, s, clock)]

    def _finish(self, worker: UUID, success: Success, clock: datetime) -> list[tuple[Any, ...]]:
        guard = {"id": success.id, "fence": success.fence, "worker": worker}
        ended = after(clock, -success.ended_ago)
        self._rows(
            "insert_attempt",
            **guard,
            **_NO_ERROR,
            outcome="succeeded",
            charged=False,
            started_at=after(clock, -success.started_ago),
            finished_at=ended,
            traceback=None,
        )
        return self._rows("finish_job", **guard, result=success.result, finished_at=ended)

    @writes
    def hold(self, claim: Claim, idle_timeout_seconds: float | None) -> None:
        """Take the write lock with the whole guard; a frozen process keeps it: no time-out here."""
        if not self._changed("hold_job", id=claim.id, fence=claim.fence, worker=claim.worker):
            raise lease_lost(claim)

    @writes
    def verdict(self, claim: Claim) -> Verdict:
        """Return what became of `claim`, read under the write lock: nobody is still committing."""
        return self._verdict(claim)

    @reads
    def verdicts(self, claims: Sequence[Claim | Held]) -> dict[tuple[UUID, int], Verdict]:
        return {(claim.id, claim.fence): self._verdict(claim) for claim in claims}

    def _verdict(self, claim: Claim | Held) -> Verdict:
        guard = {"id": claim.id, "fence": claim.fence, "worker": claim.worker}
        ours = bool(self._rows("find_held", **guard))  # first: if not ours, its end is there to see
        found = self._rows("find_attempt", **guard)
        return Verdict(outcome=found[0][0] if found else None, still_ours=ours)

    # --- steps ----------------------------------------

    @reads
    def find_step(self, job_id: UUID, name: str) -> str | None:
        rows = self._rows("find_step", id=job_id, name=name)
        return rows[0][0] if rows else None

    @writes
    def record_step(self, claim: Claim, name: str, result: str) -> None:
        """Record a step under the guard.

        While the job's own transaction is open on another connection this waits for its write
        lock in vain, and raises OperationalError in the end: there, steps need ``atomic=False``.
        """
        guard = {"id": claim.id, "fence": claim.fence, "worker": claim.worker}
        if not self._rows("find_held", **guard):
            raise lease_lost(claim)
        self._rows("record_step", **guard, name=name, result=result, now=self._clock())

    # --- sweeps ----------------------------------------

    def promote(self, limit: int, now: datetime | None = None) -> list[str]:
        return self._promote(limit, now) if self._find_due(now) else []

    @writes
    def _promote(self, limit: int, now: datetime | None) -> list[str]:
        return [r[0] for r in self._rows("promote_jobs", limit=limit, now=self._clock(now))]

    @reads
    def _find_due(self, now: datetime | None) -> bool:
        return bool(self._rows("find_due", now=self._clock(now)))

    def expire(self, limit: int, now: datetime | None = None) -> list[EndedJob]:
        return self._expire(limit, now) if self._find_expired(now) else []

    @writes
    def _expire(self, limit: int, now: datetime | None) -> list[EndedJob]:
        rows = self._rows("expire_jobs", limit=limit, now=self._clock(now))
        return [EndedJob(UUID(hex=row[0]), row[1], row[2]) for row in rows]

    @reads
    def _find_expired(self, now: datetime | None) -> bool:
        return bool(self._rows("find_expired", now=self._clock(now)))

    def park_unknown(self, known: Sequence[str], limit: int) -> list[str]:
        ids = self._find_unknown(known, limit)
        return self._park(ids) if ids else []

    @reads
    def _find_unknown(self, known: Sequence[str], limit: int) -> list[str]:
        """Return ids of unknown tasks in the claim windows: there they stand in the way."""
        found: list[str] = []
        for queue in self.live_queues():
            rows = self._rows(
                "find_unknown", queue=queue, tasks=list(known), window=CLAIM_WINDOW, limit=limit
            )
            found += [row[0] for row in rows]
        return found[:limit]

    @writes
    def _park(self, ids: list[str]) -> list[str]:
        return [row[0] for row in self._rows("park_jobs", ids=ids)]

    def admit_known(self, known: Sequence[str], limit: int) -> list[str]:
        ids = self._find_parked(known, limit)
        return self._admit(ids) if ids else []

    @reads
    def _find_parked(self, known: Sequence[str], limit: int) -> list[str]:
        return [row[0] for row in self._rows("find_parked", tasks=list(known), limit=limit)]

    @writes
    def _admit(self, ids: list[str]) -> list[str]:
        return [row[0] for row in self._rows("admit_jobs", ids=ids)]
