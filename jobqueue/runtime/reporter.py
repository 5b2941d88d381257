"""Writes what the jobs of a process report, on a connection of its own, some times a second.

Not on the side connection: a step would wait while a report does. The connection is opened with
the first report, so a process whose jobs report nothing never has it. While the database is away
reports wait in memory, within bounds; the end of the process waits for the last of them, briefly.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.engine.environment import Environment
from jobqueue.engine.reports import Batch, Reports
from jobqueue.events import emit
from jobqueue.runtime.loop import Loop
from jobqueue.storage import storage_for
from jobqueue.storage.busy import is_busy
from jobqueue.storage.connections import discard
from jobqueue.storage.errors import may_pass

logger = logging.getLogger("jobqueue")

WRITE_SECONDS = 0.5
"""Pause between two writes: how old what people see may be."""
STOP_SECONDS = 5.0
"""How long the end of a process waits for the last reports."""


class Reporter:
    """The one writer of a process's reports; jobs find in `environment` where to leave them."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._reports = environment.reports = Reports(environment.options.log_lines)
        self._connection: BaseDatabaseWrapper | None = None
        self._batch: Batch | None = None
        self.loop = Loop("reports", self.run_once, WRITE_SECONDS, self._reset)

    def start(self) -> None:
        """Write in a thread from now on."""
        self.loop.start()

    def stop(self) -> None:
        """Write what is left, once the jobs have ended; give up after some seconds."""
        self.loop.stop()
        if self.loop.join(STOP_SECONDS):
            rest = threading.Thread(target=self._write_rest, name="jobqueue-reports", daemon=True)
            rest.start()
            rest.join(STOP_SECONDS)

    def run_once(self) -> bool:
        """Write one batch, first the one that failed; return whether the next is full already."""
        batch = self._batch = self._batch or self._reports.take()
        if batch and not self._write(batch):
            return False
        self._batch = None
        dropped = self._reports.take_dropped()
        if dropped:
            emit("reports.dropped", level=logging.WARNING, count=dropped)
        return batch.is_full and self._reports.is_waiting

    def _write_rest(self) -> None:
        with suppress(Exception):
            while self._batch or self._reports.is_waiting:
                self.run_once()
        self._reset()

    def _write(self, batch: Batch) -> bool:
        """Write a batch; return False if it has to wait. Raise if the database is away."""
        if self._connection is None:
            environment = self._environment
            limit = environment.options.lease_seconds
            self._connection = environment.open_connection(statement_timeout=limit)
        try:
            batch.write(storage_for(self._connection, self._environment.options))
        except DatabaseError as error:
            if is_busy(error):
                return False  # SQLite: an atomic job that has written holds the lock to its end
            if may_pass(error):
                raise
            logger.exception("Reports of jobs were refused by the database, and are dropped")
            self._reports.dropped += len(batch.progress) + len(batch.lines)
        return True

    def _reset(self) -> None:
        if self._connection is not None:
            discard(self._connection)
