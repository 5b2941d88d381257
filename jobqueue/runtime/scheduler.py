"""The scheduler, in any number: promotes what is due, ticks, cancels what has expired, parks and
admits unknown tasks, prunes, counts attempts into rollups.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue import hints
from jobqueue.conf import Options
from jobqueue.engine.aliases import aliases_of
from jobqueue.engine.declared import is_declared, sync
from jobqueue.engine.limits import sweep_limits
from jobqueue.engine.retention import prune, prune_actions, prune_requests, scrub
from jobqueue.engine.sweeps import expire_due, obey_requests, promote_due, sweep_unknown
from jobqueue.engine.ticking import tick_schedules
from jobqueue.runtime.bulk_runner import BulkRunner
from jobqueue.runtime.rollups import PRUNE_SECONDS, RollupDuty
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import discard, open_connection

SWEEP_SECONDS = 5.0
"""Pause between two sweeps for unknown tasks."""
FORGET_SECONDS = 60.0
"""Age at which a request to cancel goes whose job has ended: nobody needs it by then."""
SYNC_SECONDS = 60.0
"""Pause between two comparisons of the schedules that code declares with their rows."""


class Scheduler:
    """One scheduler; `run_once` is driven by a `Loop`.

    only_promote: leave out ticks, sweeps and pruning (--no-maintenance); to promote, to expire and
    to admit under limits, which clear the way of claims, is every worker's. queues: those that the
    workers beside it serve; empty: all. Schedules of every alias in the database are ticked:
    workers run their jobs, too.
    """

    def __init__(
        self,
        alias: str,
        options: Options,
        direct: bool,
        should_stop: Callable[[], bool] = lambda: False,
        only_promote: bool = False,
        queues: Sequence[str] = (),
    ) -> None:
        self._alias = alias
        self._options = options
        self._should_stop = should_stop
        self._only_promote = only_promote
        self._connection: BaseDatabaseWrapper = open_connection(options.database, direct=direct)
        self._bulk = BulkRunner(alias, options)
        self._aliases = aliases_of(options.database)
        self._sync_at = 0.0
        self._queues = tuple(queues) or None
        self._limits_after = ""
        self._sweep_at = 0.0
        self._prune_at = time.monotonic() + PRUNE_SECONDS * random.random()
        self._rollups = RollupDuty()
        self.empty_rounds = 0

    def run_once(self) -> bool:
        """Do what is due now; return whether to come back at once (else the interval is the poll).

        That is for bulk operations; on SQLite they leave the write lock to others in between.
        """
        storage = storage_for(self._connection, self._options)
        expire_due(storage)
        obey_requests(storage)
        queues = promote_due(storage)
        admitted, self._limits_after = sweep_limits(storage, self._queues, self._limits_after)
        queues |= admitted.queues
        now = time.monotonic()
        if not self._only_promote:
            queues |= self._maintain(storage, now)
        if queues:
            self.empty_rounds = 0
            hints.send(self._alias, queues, self._connection)
        else:
            self.empty_rounds += 1
        if not self._only_promote and now >= self._prune_at:
            self._prune_at = now + PRUNE_SECONDS * random.uniform(0.5, 1.5)
            prune(storage, self._options, self._should_stop)
            scrub(storage, self._options, self._should_stop)
            storage.prune_uses()
            prune_requests(storage, self._should_stop)
            prune_actions(storage, self._options, self._should_stop)
        if not self._only_promote:
            self._rollups.run_once(storage)
        if not self._only_promote and self._bulk.run_once(storage):
            self.empty_rounds = 0
            return not storage.one_host
        return False

    def _maintain(self, storage: Storage, now: float) -> set[str]:
        """Tick, and sweep now and then; return the queues that got a ready job."""
        if now >= self._sync_at:
            self._sync()
            self._sync_at = now + SYNC_SECONDS * random.uniform(0.8, 1.2)
        is_sweep = now >= self._sweep_at
        queues = tick_schedules(storage, self._aliases, is_declared, everything=is_sweep)
        if is_sweep:
            self._sweep_at = now + SWEEP_SECONDS
            queues |= sweep_unknown(storage)
            storage.forget_requests(FORGET_SECONDS)
        return queues

    def _sync(self) -> None:
        """Make the rows of declared schedules what the code says; no session is kept for it."""
        connection = connections[self._options.database]
        try:
            for alias in self._aliases:
                sync(alias)
        finally:
            if not connection.in_atomic_block:
                connection.close()

    def reset(self) -> None:
        """Drop the connections."""
        discard(self._connection)
        self._bulk.reset()
