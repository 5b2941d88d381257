"""The life of workers on SQLite: a lock on a file says who lives, never a lease.

SQLite is one host, so the kernel itself is the witness: at once, and without a beat. A frozen
process lives; its jobs are freed by their deadline alone. Heartbeats are written all the same,
for people to see.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from jobqueue.ids import lock_key
from jobqueue.states import Blame
from jobqueue.storage.busy import is_foreign, reads, writes
from jobqueue.storage.life_file import LifeFile, life_files
from jobqueue.storage.records import Held, NewWorker, Orphan, Renewal, WorkerRow
from jobqueue.storage.rows import worker_row
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_values import after, optional_id, time_of

PROCESS_ENDED = "process ended"
"""Why a worker is dead whose life file nobody holds."""


class SQLiteWorkers(SQLiteStatements):
    """What the protocol says of workers, and of sessions, which SQLite does not have."""

    one_host: ClassVar[bool] = True

    # --- life of a worker ----------------------------------------

    @writes
    def register_worker(self, worker: NewWorker) -> None:
        """Insert the worker's row; `hold_life_lock` comes first, or the row is a dead worker's."""
        row = worker_row(worker)
        clock = self._clock()
        self._rows("register_worker", **row, now=clock, lease_until=after(clock, row["lease"]))

    @writes
    def renew_worker(self, worker: UUID, lease_seconds: float, direct: bool) -> Renewal | None:
        clock = self._clock()
        until = after(clock, lease_seconds)
        rows = self._rows("renew_worker", id=worker, now=clock, lease_until=until, direct=direct)
        return Renewal(draining=bool(rows[0][0])) if rows else None

    def mark_dead(self, worker: UUID, reason: str, blame: str = Blame.JOBS) -> bool:
        marked = self._mark_dead(worker, reason[:64], blame)
        if marked and not is_foreign(self.connection):  # a foreign transaction may roll back
            self._forget(worker)
        return marked

    def mark_expired(
        self, worker: UUID, blame: str = Blame.JOBS, now: datetime | None = None
    ) -> bool:
        """Declare a worker dead if nobody holds the lock of its life file; `now` says nothing.

        A missing file counts as not held, and no lease is looked at: a worker that is frozen, or
        too busy to beat, is alive here. Its jobs are freed by their deadline.
        """
        return not self._is_alive(worker) and self.mark_dead(worker, PROCESS_ENDED, blame)

    @reads
    def workers(self, now: datetime | None = None) -> list[WorkerRow]:
        """Return the rows that are not dead.

        `lease_left` is below zero exactly for those whose process has ended, so that a reaper
        which looks at leases finds them at once, and never a frozen one.
        """
        clock, database = self._clock(now), self._database_file()
        found = []
        for each, kind, supervisor, direct, until, beat in self._rows("list_workers"):
            left = (time_of(until) - clock).total_seconds()
            left = max(left, 0.0) if self._is_alive(UUID(hex=each), database) else min(left, -1.0)
            ago = (clock - time_of(beat)).total_seconds()
            owner = optional_id(supervisor)
            found.append(WorkerRow(UUID(hex=each), kind, owner, bool(direct), left, ago))
        return found

    @reads
    def known_tasks(self) -> set[str]:
        return {row[0] for row in self._rows("known_tasks")}

    @writes
    def update_worker_tasks(self, worker: UUID, tasks: Sequence[str]) -> None:
        self._changed("update_worker_tasks", id=worker, tasks=json.dumps(list(tasks)))

    @reads
    def parked_tasks(self, limit: int) -> list[str]:
        return [row[0] for row in self._rows("parked_tasks", limit=limit)]

    @reads
    def running_of(self, workers: Sequence[UUID]) -> list[Held]:
        return [held_of(row) for row in self._rows("running_jobs", workers=list(workers))]

    @reads
    def orphan_workers(self, patience_seconds: float = 0.0) -> list[Orphan]:
        before = after(self._clock(), -patience_seconds)
        return [
            Orphan(UUID(hex=worker)) if blame is None else Orphan(UUID(hex=worker), reason, blame)
            for worker, reason, blame in self._rows("orphan_workers", before=before)
        ]

    @reads
    def overdue(self, slack_seconds: float, now: datetime | None = None) -> list[Held]:
        before = after(self._clock(now), -slack_seconds)
        return [held_of(row) for row in self._rows("overdue_jobs", before=before)]

    @writes
    def prune_workers(self, older_than_seconds: float) -> int:
        """Delete rows of workers dead for long that hold no job, and the files of those gone."""
        before = after(self._clock(), -older_than_seconds)
        pruned = self._rows("prune_workers", before=before)
        living = {row[0] for row in self._rows("list_workers")}
        for life in self._life_files():
            if life.identity.hex not in living and not life.is_held():
                life.remove()
        return len(pruned)

    @writes
    def _mark_dead(self, worker: UUID, reason: str, blame: str) -> bool:
        now = self._clock()
        return bool(self._changed("mark_dead", id=worker, reason=reason, blame=blame, now=now))

    # --- life files ----------------------------------------

    def hold_life_lock(self, worker: UUID) -> None:
        """Hold the worker's life file until this process ends, or marks the worker dead."""
        database = self._database_file()
        if database:
            LifeFile(database, worker).hold()

    def life_locks(self) -> set[int]:
        """Return the keys of the workers that live: unlike a session lock, *present* proves it."""
        if self._database_file():
            return {lock_key(life.identity) for life in self._life_files() if life.is_held()}
        living = [UUID(hex=row[0]) for row in self._rows("list_workers")]
        return {lock_key(worker) for worker in living if self._is_alive(worker)}

    @reads
    def _is_alive(self, worker: UUID, database: str | None = None) -> bool:
        database = self._database_file() if database is None else database
        if database:
            return LifeFile(database, worker).is_held()
        found = self._rows("find_pid", id=worker)
        return bool(found) and found[0][0] == os.getpid()  # in memory: nobody else can see it

    def _life_files(self) -> list[LifeFile]:
        database = self._database_file()
        return life_files(database) if database else []

    def _forget(self, worker: UUID) -> None:
        database = self._database_file()
        life = LifeFile(database, worker) if database else None
        if life and (life.is_ours() or not life.is_held()):
            with suppress(OSError):  # a sweep of `prune_workers` takes what stays
                life.remove()

    @reads
    def _database_file(self) -> str:
        """Return the path of the database, empty for one in memory."""
        return str(self._rows("find_database")[0][0] or "")

    # --- sessions: there are none ----------------------------------------

    def is_direct(self) -> bool:
        return False

    def end_sessions(self, workers: Sequence[UUID]) -> int:
        return 0

    def end_session(self, pid: int, worker: UUID) -> bool:
        """Return True: a lost connection of ours was closed with its transaction."""
        return True

    def server_started_at(self) -> datetime | None:
        return None

    def notify(self, channel: str, payload: str) -> None:
        raise NotImplementedError("SQLite has no notifications; set the option HINTS to none.")


def held_of(row: Sequence[object]) -> Held:
    """Return a running job as its row says."""
    held = Held._make(row)
    return held._replace(
        id=UUID(hex=str(held.id)), worker=UUID(hex=str(held.worker)), alone=bool(held.alone)
    )
