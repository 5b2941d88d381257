"""A scheduler's part in bulk operations: a step at a turn, on a connection held only meanwhile."""

from __future__ import annotations

from contextlib import suppress

from django.db import connections

from jobqueue.conf import Options
from jobqueue.engine.bulk_steps import run_step
from jobqueue.storage import Storage


class BulkRunner:
    """Carries out steps on Django's connection of the calling thread."""

    def __init__(self, alias: str, options: Options) -> None:
        self._alias = alias
        self._database = options.database
        self._is_connected = False

    def run_once(self, storage: Storage) -> bool:
        """Carry out one step if an operation waits for one; return whether one was.

        storage: the caller's own, which is asked at every turn.
        """
        if not storage.bulk_waits():
            self.reset()
            return False
        self._is_connected = True
        return run_step(self._alias) is not None

    def reset(self) -> None:
        """Drop the connection, unless it is inside a caller's transaction (a test's)."""
        connection = connections[self._database]
        if self._is_connected and not connection.in_atomic_block:
            with suppress(Exception):
                connection.close()
        self._is_connected = False
