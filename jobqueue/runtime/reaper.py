"""The reaper: notices dead workers and gives their jobs a way on. Any number may run.

This is where a dead worker is noticed by others than its supervisor: a life lock that went
missing (within about two seconds), a lease that ran out, a job under an identity without a live
row, a job well past its deadline. Each is made a fact in the worker's row by compare-and-set
before anything else (`jobqueue.engine.recovery`). No look waits for a dead worker's session to
end, or for a row that somebody has locked: it is looked at again with the next.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.conf import DEADLINE_SLACK_SECONDS, LOCK_LOOK_SECONDS, Options
from jobqueue.engine.recovery import Death, death_of, declare, reap_overdue, recover
from jobqueue.events import emit, line_of
from jobqueue.ids import lock_key
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import discard, open_connection
from jobqueue.storage.errors import is_away
from jobqueue.storage.records import WorkerRow

logger = logging.getLogger("jobqueue")

LOOK_SECONDS = 0.5
"""Pause between two looks at the life locks."""
ORPHAN_PATIENCE_SECONDS = 6.0
"""How long the jobs of a worker declared dead are left to whoever declared it: a supervisor knows
which of them had started, a reaper would suspect them all."""
FLEET_SUPERVISORS = 3
"""From how many supervisors on a common end is taken for the database's or network's fault."""


class Reaper:
    """One reaper; `run_once` is driven by a `Loop`."""

    def __init__(self, options: Options, direct: bool) -> None:
        self._options = options
        self._connection: BaseDatabaseWrapper = open_connection(options.database, direct=direct)
        self._connected_at: float | None = None
        self._server_started_at: datetime | None = None
        self._seen_locked: set[UUID] = set()
        self._missing_since: dict[UUID, float] = {}
        self._is_direct = False
        self._deaths: dict[UUID, Death] = {}
        self._failing: set[UUID] = set()

    def run_once(self) -> bool:
        """Look once at everything; return False (nothing makes the next look urgent)."""
        storage = storage_for(self._connection, self._options)
        self._notice_connection(storage)
        workers = storage.workers()
        for worker in self._without_lock(storage, workers):
            death = Death(worker, "killed or cut off")
            declare(storage, death)
            self._deaths[worker] = death
        self._expire(storage, workers)
        for orphan in storage.orphan_workers(ORPHAN_PATIENCE_SECONDS):
            death = death_of(orphan, direct=self._is_direct)
            self._deaths.setdefault(death.worker, death)
        self._recover(storage)
        overdue = storage.overdue(DEADLINE_SLACK_SECONDS)
        if overdue:
            reap_overdue(storage, overdue, self._options)
        return False

    def _recover(self, storage: Storage) -> None:
        """Give what the dead hold a way on; what is not settled then has its turn in the next look.

        One that cannot be dealt with holds up no other. Raise the error if the database is away.
        """
        for worker, death in list(self._deaths.items()):
            try:
                recovered = recover(storage, death, self._options)
            except Exception as error:
                if is_away(error):
                    raise
                self._failed(worker, error)
                continue
            self._failing.discard(worker)
            if recovered.is_settled:
                del self._deaths[worker]

    def _failed(self, worker: UUID, error: Exception) -> None:
        logger.debug("Worker %s cannot be recovered", worker, exc_info=error)
        if worker not in self._failing:
            self._failing.add(worker)
            error_line = line_of(error)
            emit("worker.not_recovered", level=logging.ERROR, worker=worker, error=error_line)

    def reset(self) -> None:
        """Drop the connection; what was seen on it proves nothing any more."""
        discard(self._connection)
        self._connected_at = None
        self._seen_locked.clear()
        self._missing_since.clear()

    # --- life locks ----------------------------------------

    def _notice_connection(self, storage: Storage) -> None:
        """Note a new connection or server: what was seen before proves nothing any more."""
        now = time.monotonic()
        if self._connected_at is None:
            self._is_direct = storage.is_direct()
            self._connected_at = now
        started = storage.server_started_at()
        if self._server_started_at not in (None, started):
            self._connected_at = now
            self._seen_locked.clear()
            self._missing_since.clear()
        self._server_started_at = started

    def _without_lock(self, storage: Storage, workers: Sequence[WorkerRow]) -> list[UUID]:
        """Return workers whose life lock, seen before, is missing in looks that span 1.5 s.

        Missing proves death only for a lock that was seen held. Present proves nothing (a forked
        grandchild keeps the session). After connecting, a reaper waits one lease.
        """
        if not self._is_direct:
            return []
        held = storage.life_locks()
        now = time.monotonic()
        direct = {w.id for w in workers if w.direct}
        self._seen_locked &= direct
        missing: list[UUID] = []
        for worker in direct:
            if lock_key(worker) in held:
                self._seen_locked.add(worker)
                self._missing_since.pop(worker, None)
            elif worker in self._seen_locked:
                since = self._missing_since.setdefault(worker, now)
                if now - since >= LOCK_LOOK_SECONDS:
                    missing.append(worker)
        self._missing_since = {w: t for w, t in self._missing_since.items() if w in direct}
        return missing if self._is_settled(now) else []

    def _is_settled(self, now: float) -> bool:
        connected = self._connected_at
        return connected is not None and now - connected >= self._options.lease_seconds

    # --- leases ----------------------------------------

    def _expire(self, storage: Storage, workers: Sequence[WorkerRow]) -> None:
        """Declare workers dead whose lease ran out (on one host: whose life file is not held).

        Their jobs are suspects unless the database or network may be at fault: the server was
        restarted since the last renewal, or much of the fleet ran out together. All are declared
        before the first is dealt with, so that every reaper sees the same fleet; each row keeps
        the verdict, for whoever goes on if this one is interrupted.
        """
        candidates = [w for w in workers if w.lease_left < 0]
        if storage.one_host:
            candidates = self._free_for_long(candidates)
        fleet_wide = not storage.one_host and _is_fleet_wide(candidates, workers)
        deaths = [_expiry(worker, fleet_wide, self._is_direct) for worker in candidates]
        expired = [death for death in deaths if storage.mark_expired(death.worker, death.blame)]
        for death in expired:
            emit("worker.expired", level=logging.WARNING, worker=death.worker, blamed=death.blamed)
            self._deaths[death.worker] = death

    def _free_for_long(self, workers: Sequence[WorkerRow]) -> list[WorkerRow]:
        """Return those whose life file has been free in looks that span 1.5 s.

        Nothing more needs to be proved, but a supervisor that saw its process end knows which of
        its jobs had started, and should be the first.
        """
        now = time.monotonic()
        self._missing_since = {w.id: self._missing_since.get(w.id, now) for w in workers}
        return [w for w in workers if now - self._missing_since[w.id] >= LOCK_LOOK_SECONDS]


def _expiry(worker: WorkerRow, fleet_wide: bool, direct: bool) -> Death:
    return Death(
        worker.id,
        "lease expired",
        blamed=not (fleet_wide or worker.missed_restart),
        direct=direct and worker.direct,
    )


def _is_fleet_wide(expired: Sequence[WorkerRow], workers: Sequence[WorkerRow]) -> bool:
    """Return whether more than half of at least three supervisors' workers ran out together."""
    supervisors = {w.supervisor for w in workers}
    if len(supervisors) < FLEET_SUPERVISORS:
        return False
    hit = Counter(w.supervisor for w in expired)
    return len(hit) > len(supervisors) / 2
