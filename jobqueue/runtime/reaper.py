"""The reaper: notices dead workers and gives their jobs a way on. Any number may run.

This is where a dead worker is noticed by others than its supervisor: a life lock that went
missing (within about two seconds), a lease that ran out, a job under an identity without a live
row, a job well past its deadline. Each is made a fact in the worker's row by compare-and-set
before anything else (`jobqueue.engine.recovery`).
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
from jobqueue.engine.recovery import SETTLE_SECONDS, Death, reap_overdue, recover
from jobqueue.events import emit
from jobqueue.ids import lock_key
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import discard, open_connection
from jobqueue.storage.records import WorkerRow

logger = logging.getLogger("jobqueue")

LOOK_SECONDS = 0.5
"""Pause between two looks at the life locks."""
ORPHAN_PATIENCE_SECONDS = SETTLE_SECONDS + 1.0
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

    def run_once(self) -> bool:
        """Look once at everything; return False (nothing makes the next look urgent)."""
        storage = storage_for(self._connection, self._options)
        self._notice_connection(storage)
        workers = storage.workers()
        for worker in self._without_lock(storage, workers):
            recover(storage, Death(worker, "life lock lost"), self._options)
        self._expire(storage, workers)
        for worker in storage.orphan_workers(ORPHAN_PATIENCE_SECONDS):
            recover(storage, Death(worker, "no live row"), self._options)
        overdue = storage.overdue(DEADLINE_SLACK_SECONDS)
        if overdue:
            reap_overdue(storage, overdue, self._options)
        return False

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
        restarted since the last renewal, or much of the fleet ran out together.
        """
        candidates = [w for w in workers if storage.one_host or w.lease_left < 0]
        expired = [w for w in candidates if storage.mark_expired(w.id)]
        if not expired:
            return
        # All that had run out, also those that another reaper has declared dead meanwhile.
        fleet_wide = not storage.one_host and _is_fleet_wide(candidates, workers)
        for worker in expired:
            blamed = not (fleet_wide or worker.missed_restart)
            emit("worker.expired", level=logging.WARNING, worker=worker.id, blamed=blamed)
            recover(storage, Death(worker.id, "lease expired", blamed=blamed), self._options)


def _is_fleet_wide(expired: Sequence[WorkerRow], workers: Sequence[WorkerRow]) -> bool:
    """Return whether more than half of at least three supervisors' workers ran out together."""
    supervisors = {w.supervisor for w in workers}
    if len(supervisors) < FLEET_SUPERVISORS:
        return False
    hit = Counter(w.supervisor for w in expired)
    return len(hit) > len(supervisors) / 2
