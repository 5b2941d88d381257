"""Storage on PostgreSQL: the statements of ``sql/postgresql/``, nearly always one a method.

Statements go through Django's cursor (so that a broken transaction is seen) with parameters bound
by the client, hence unprepared: the server plans each with its values, which the claim and the
batched finish need (a generic plan scans), and which works through a transaction pooler.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from jobqueue.conf import (
    AUDIT_PATIENCE_SECONDS,
    CLAIM_WINDOW,
    COMMIT_IDLE_TIMEOUT,
    DEADLINE_SLACK_SECONDS,
)
from jobqueue.exceptions import RowLocked
from jobqueue.ids import lock_key, session_name
from jobqueue.states import Blame
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.errors import LOCK_NOT_AVAILABLE, sqlstate
from jobqueue.storage.postgres_batch import finish_quickly, may_be_quick
from jobqueue.storage.postgres_commit import finish_and_commit, may_go_together
from jobqueue.storage.postgres_health import PostgresHealth
from jobqueue.storage.postgres_idempotency import PostgresIdempotency
from jobqueue.storage.postgres_limits import PostgresLimits
from jobqueue.storage.postgres_moving import PostgresMoving
from jobqueue.storage.postgres_reports import PostgresReports
from jobqueue.storage.postgres_requests import PostgresRequests
from jobqueue.storage.postgres_retention import PostgresRetention
from jobqueue.storage.postgres_rollups import PostgresRollups
from jobqueue.storage.postgres_schedules import PostgresSchedules
from jobqueue.storage.postgres_waiting import PostgresWaiting
from jobqueue.storage.records import (
    Claim,
    EndedJob,
    Held,
    Inserted,
    NewJob,
    NewWorker,
    Orphan,
    Place,
    Renewal,
    Success,
    Verdict,
    Window,
    WorkerRow,
)
from jobqueue.storage.rows import (
    by_urgency,
    lease_errors,
    new_job_row,
    places,
    turn_of_queues,
    worker_row,
)
from jobqueue.storage.statements import statement


class PostgresStorage(
    PostgresLimits,
    PostgresHealth,
    PostgresIdempotency,
    PostgresReports,
    PostgresRequests,
    PostgresRetention,
    PostgresMoving,
    PostgresRollups,
    PostgresSchedules,
    PostgresWaiting,
):
    """Storage on PostgreSQL 15 and newer."""

    # --- enqueue ----------------------------------------

    def insert_jobs(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Inserted]:
        rows = json.dumps([new_job_row(n, job) for n, job in enumerate(jobs)], ensure_ascii=False)
        sql = statement(self.vendor, "insert_jobs", on_conflict="")
        found = {row[0]: Inserted(*row) for row in self._run(sql, {"rows": rows, "now": now})}
        self._insert_tags(jobs)
        return [found[job.id] for job in jobs]

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
        rows = self._run(
            statement(self.vendor, "claim_jobs", turn=turn_of_queues(strict)),
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
        return by_urgency([Claim._make(row) for row in rows], queues if strict else None)

    def claim_alone(
        self, worker: UUID, queues: Sequence[str], tasks: Sequence[str], now: datetime | None = None
    ) -> list[Claim]:
        rows = self._rows(
            "claim_alone", worker=worker, queues=list(queues), tasks=list(tasks), now=now
        )
        return [Claim._make(row) for row in rows]

    def alone_waiting(self, queues: Sequence[str], tasks: Sequence[str]) -> int:
        return int(self._rows("count_alone", queues=list(queues), tasks=list(tasks))[0][0])

    def read_windows(
        self, queues: Sequence[str], behind: Sequence[Place], tasks: Sequence[str]
    ) -> list[Window]:
        rows = self._rows(
            "read_windows",
            queues=list(queues),
            **places(queues, behind),
            tasks=list(tasks),
            window=CLAIM_WINDOW,
        )
        return [
            Window(usable, None if rank is None else Place(rank, last), limited)
            for usable, limited, rank, last in rows
        ]

    def live_queues(self) -> list[str]:
        return [row[0] for row in self._rows("live_queues")]

    # --- ends of an attempt ----------------------------------------

    def finish_one(self, claim: Claim, result: str, started_ago: float) -> None:
        # In a savepoint (a TestCase's) no COMMIT follows: the limit would be the test's.
        is_nested = bool(self.connection.savepoint_ids)
        limit_idle = "" if is_nested else statement(self.vendor, "limit_idle")
        parameters = {
            "id": claim.id,
            "fence": claim.fence,
            "worker": claim.worker,
            "result": result,
            "started_ago": started_ago,
            "idle_timeout": COMMIT_IDLE_TIMEOUT,
        }
        with lease_errors(claim):
            sql = statement(self.vendor, "finish_one", limit_idle=limit_idle)
            self._run(sql, parameters)

    def finish_and_commit(self, claim: Claim, result: str, started_ago: float) -> bool:
        is_own = type(self).finish_one is not PostgresStorage.finish_one
        if is_own or not may_go_together(self.connection):
            self.finish_one(claim, result, started_ago)
            return False
        finish_and_commit(self.connection, claim, result, started_ago)
        return True

    def finish_many(self, worker: UUID, successes: Sequence[Success]) -> list[tuple[UUID, int]]:
        if may_be_quick(self.connection):
            unmatched = finish_quickly(self.connection, worker, successes)
            if unmatched is not None:
                return unmatched
        free = statement(self.vendor, "finish_free")
        rows = self._run(
            statement(self.vendor, "finish_jobs", rows=free),
            {
                "worker": worker,
                "ids": [s.id for s in successes],
                "fences": [s.fence for s in successes],
                "results": [s.result for s in successes],
                "started": [s.started_ago for s in successes],
                "ended": [s.ended_ago for s in successes],
            },
        )
        return [(row[0], row[1]) for row in rows]

    def hold(self, claim: Claim, idle_timeout_seconds: float | None) -> None:
        limit = idle_timeout_seconds
        with lease_errors(claim):
            self._rows(
                "hold_job",
                id=claim.id,
                fence=claim.fence,
                worker=claim.worker,
                idle_timeout=None if limit is None else f"{int(limit * 1000)}ms",
            )

    def verdict(self, claim: Claim) -> Verdict:
        with transaction_on(self.connection):
            row = self._rows("lock_job", id=claim.id)
            found = self._rows("find_attempt", id=claim.id, fence=claim.fence, worker=claim.worker)
        ours = bool(row) and row[0] == ("running", claim.fence, claim.worker)
        return Verdict(outcome=found[0][0] if found else None, still_ours=ours)

    def verdicts(self, claims: Sequence[Claim | Held]) -> dict[tuple[UUID, int], Verdict]:
        rows = self._rows(
            "read_verdicts",
            ids=[claim.id for claim in claims],
            fences=[claim.fence for claim in claims],
            workers=[claim.worker for claim in claims],
        )
        return {(row[0], row[1]): Verdict(row[2], row[3]) for row in rows}

    # --- steps ----------------------------------------

    def find_step(self, job_id: UUID, name: str) -> str | None:
        rows = self._rows("find_step", id=job_id, name=name)
        return rows[0][0] if rows else None

    def record_step(self, claim: Claim, name: str, result: str) -> None:
        with lease_errors(claim):
            self._rows(
                "record_step",
                id=claim.id,
                fence=claim.fence,
                worker=claim.worker,
                name=name,
                result=result,
            )

    # --- life of a worker ----------------------------------------

    def register_worker(self, worker: NewWorker) -> None:
        self._rows("register_worker", **worker_row(worker), clock=time.time())

    def renew_worker(self, worker: UUID, lease_seconds: float, direct: bool) -> Renewal | None:
        rows = self._rows(
            "renew_worker", id=worker, lease=lease_seconds, direct=direct, clock=time.time()
        )
        return Renewal(*rows[0]) if rows else None

    def mark_dead(self, worker: UUID, reason: str, blame: str = Blame.JOBS) -> bool:
        return bool(self._rows("mark_dead", id=worker, reason=reason[:64], blame=blame))

    def mark_expired(
        self, worker: UUID, blame: str = Blame.JOBS, now: datetime | None = None
    ) -> bool:
        return bool(self._rows("mark_expired", id=worker, blame=blame, now=now))

    def workers(self, now: datetime | None = None) -> list[WorkerRow]:
        return [WorkerRow._make(row) for row in self._rows("list_workers", now=now)]

    def known_tasks(self) -> set[str]:
        return {row[0] for row in self._rows("known_tasks")}

    def update_worker_tasks(self, worker: UUID, tasks: Sequence[str]) -> None:
        self._rows("update_worker_tasks", id=worker, tasks=json.dumps(list(tasks)))

    def running_of(self, workers: Sequence[UUID]) -> list[Held]:
        return [Held._make(row) for row in self._rows("running_jobs", workers=list(workers))]

    def orphan_workers(self, patience_seconds: float = 0.0) -> list[Orphan]:
        return [
            Orphan(row[0]) if row[2] is None else Orphan(*row)
            for row in self._rows("orphan_workers", patience=patience_seconds)
        ]

    def overdue(self, slack_seconds: float, now: datetime | None = None) -> list[Held]:
        return [Held._make(r) for r in self._rows("overdue_jobs", slack=slack_seconds, now=now)]

    # --- sessions ----------------------------------------

    def is_direct(self) -> bool:
        self.connection.ensure_connection()
        handshake = self.connection.connection.info.backend_pid
        return bool(handshake == self._rows("backend_pid")[0][0])

    def end_sessions(self, workers: Sequence[UUID]) -> int:
        names = [session_name(worker) for worker in workers]
        return int(self._rows("end_sessions", names=names)[0][0])

    def end_session(self, pid: int, worker: UUID) -> bool:
        return int(self._rows("end_session", pid=pid, name=session_name(worker))[0][0]) == 0

    def hold_life_lock(self, worker: UUID) -> None:
        self._rows("take_life_lock", key=lock_key(worker))

    def life_locks(self) -> set[int]:
        return {row[0] for row in self._rows("life_locks")}

    def server_started_at(self) -> datetime | None:
        started: datetime = self._rows("server_started_at")[0][0]
        return started

    # --- sweeps ----------------------------------------

    def promote(self, limit: int, now: datetime | None = None) -> list[str]:
        return [row[0] for row in self._rows("promote_jobs", limit=limit, now=now)]

    def expire(self, limit: int, now: datetime | None = None) -> list[EndedJob]:
        return [EndedJob._make(row) for row in self._rows("expire_jobs", limit=limit, now=now)]

    def park_unknown(self, known: Sequence[str], limit: int) -> list[str]:
        rows = self._rows("park_unknown", tasks=list(known), limit=limit, window=CLAIM_WINDOW)
        return [row[0] for row in rows]

    def parked_tasks(self, limit: int) -> list[str]:
        return [row[0] for row in self._rows("parked_tasks", limit=limit)]

    def admit_known(self, known: Sequence[str], limit: int) -> list[str]:
        return [row[0] for row in self._rows("admit_known", tasks=list(known), limit=limit)]

    # --- operators ----------------------------------------

    def clock(self) -> datetime:
        time: datetime = self._rows("read_clock")[0][0]
        return time

    def begin_operation(self, lock_wait_seconds: float) -> None:
        self._rows("set_read_committed")
        self._rows("limit_lock_wait", milliseconds=int(lock_wait_seconds * 1000))

    def cancel_waiting(self, ids: Sequence[UUID], reason: str) -> list[UUID]:
        return [r[0] for r in self._rows("cancel_waiting", ids=sorted(ids), reason=reason[:64])]

    def discard_dead(self, ids: Sequence[UUID], reason: str) -> list[UUID]:
        return [r[0] for r in self._rows("discard_dead", ids=sorted(ids), reason=reason[:64])]

    def force_cancel(self, job_id: UUID, fence: int, worker: UUID, reason: str) -> bool:
        run = {"id": job_id, "fence": fence, "worker": worker, "reason": reason[:64]}
        try:
            return bool(self._rows("force_cancel", **run))
        except DatabaseError as error:
            if sqlstate(error) == LOCK_NOT_AVAILABLE:
                raise RowLocked(
                    "The job's row is locked by a transaction that is about to end; try again."
                ) from error
            raise

    def notify(self, channel: str, payload: str) -> None:
        self._rows("notify_channel", channel=channel, payload=payload)

    # --- audit ----------------------------------------

    def audit_rows(self, check: str, limit: int) -> list[dict[str, Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(
                statement(self.vendor, f"audit_{check}"),
                {
                    "limit": limit,
                    "patience": AUDIT_PATIENCE_SECONDS,
                    "slack": DEADLINE_SLACK_SECONDS,
                },
            )
            columns = [column[0] for column in cursor.description]
            return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def database_settings(self) -> dict[str, str]:
        return {row[0]: row[1] for row in self._rows("database_settings")}
