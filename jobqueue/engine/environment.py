"""What one process that runs jobs knows about itself, and its side connection."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.conf import Options
from jobqueue.engine.reports import Reports
from jobqueue.exceptions import StepError
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import discard, open_connection

FORKED_COPY = 70
"""Exit code of a forked copy that returned from the job's code (sysexits EX_SOFTWARE)."""


@dataclass
class Environment:
    """The identity, options and side connection of a process that runs jobs.

    identity: of the process; a claim carries its own copy, which the guard uses. direct: sessions
    reach the server itself. is_alive: False once the process lost its lease, so that nothing
    waits on. test_connection: None opens real side connections; tests inside a TestCase give
    Django's connection instead. reports: where jobs leave progress and log lines; None: nowhere.
    """

    identity: UUID
    options: Options
    direct: bool = False
    is_alive: Callable[[], bool] = lambda: True
    test_connection: BaseDatabaseWrapper | None = None
    reports: Reports | None = None
    pid: int = field(default_factory=os.getpid)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def _side(self) -> BaseDatabaseWrapper:
        return self.open_connection()

    def open_connection(self, statement_timeout: float | None = None) -> BaseDatabaseWrapper:
        """Return a new connection of ours that bears this process's identity.

        statement_timeout: seconds; only a session proven direct has it.
        """
        return open_connection(
            self.options.database,
            identity=self.identity,
            lease_seconds=self.options.lease_seconds,
            direct=self.direct,
            statement_timeout=statement_timeout,
        )

    @contextmanager
    def side_storage(self) -> Iterator[Storage]:
        """Storage on the process's one side connection, for short statements about running jobs.

        Not the job's own connection: what is written here stays when the job's transaction rolls
        back. One thread at a time; after an error the session is dropped.
        """
        if self.test_connection is not None:
            yield storage_for(self.test_connection, self.options)
            return
        with self._lock:
            try:
                yield storage_for(self._side, self.options)
            except BaseException:  # also of an interruption: the statement may be half-way
                discard(self._side)
                raise

    @contextmanager
    def fresh_storage(self, statement_timeout: float | None = None) -> Iterator[Storage]:
        """Storage on a new connection, for what may wait on locks; closed afterwards."""
        connection = self.open_connection(statement_timeout)
        try:
            yield storage_for(connection, self.options)
        finally:
            with suppress(Exception):
                connection.close()

    def leave_if_forked(self) -> None:
        """End this process at once if it is a copy that a job forked: it may finish nothing."""
        if os.getpid() != self.pid:
            os._exit(FORKED_COPY)

    def refuse_copy(self) -> None:
        """Raise StepError in a copy of this process that a job forked: it may write nothing."""
        if os.getpid() != self.pid:
            raise StepError(
                "A process that a job forked cannot write for the job: return what it found, and "
                "call context.atomic(), commit() and step() in the job's own process."
            )

    def close(self) -> None:
        """Close the side connection."""
        with self._lock, suppress(Exception):
            self._side.close()
