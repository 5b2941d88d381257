"""The transaction around the code of an atomic task: one ``atomic()`` block, used again if it can.

psycopg sends BEGIN with the first statement. A job that ran none leaves its block as it was
opened, and so does one whose COMMIT went with its finish, if nothing waits to be called after it.
The thread's next job may have such a block (`JobBlock.is_clean`): opening and leaving one costs
Django more than everything else that a small job needs. A kept block belongs to its thread and is
left before that thread waits for work, or runs anything else than an atomic job.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

from django.db import Error, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.engine.proof import CommitProof, Witness
from jobqueue.storage.connections import discard


class _Kept(threading.local):
    """The block that this thread's last job left as it was opened."""

    block: Any = None  # Django's Atomic
    connection: BaseDatabaseWrapper | None = None
    session: Any = None  # the driver's connection in which it was opened


_kept = _Kept()


class JobBlock:
    """``with`` it around a job's code; `proof` is planted by its COMMIT.

    is_nested: it is a savepoint in a block of the caller's, as in a TestCase.
    """

    __slots__ = ("_block", "_connection", "_is_kept", "_proof", "_witness", "is_nested")

    def __init__(
        self, connection: BaseDatabaseWrapper, proof: CommitProof, witness: Witness
    ) -> None:
        self._connection = connection
        self._proof = proof
        self._witness = witness
        self._is_kept = False
        self.is_nested = False

    def __enter__(self) -> JobBlock:
        connection = self._connection
        self._block = _take(connection)
        if self._block is None:
            self.is_nested = connection.in_atomic_block
            self._block = transaction.atomic(using=connection.alias)
            self._block.__enter__()
        if not self.is_nested:
            transaction.on_commit(self._proof.plant, using=connection.alias)
        connection.execute_wrappers.append(self._witness)
        return self

    @property
    def is_clean(self) -> bool:
        """Whether a block that holds no transaction any more is as it was opened.

        Not if the session shall be looked at or closed between two jobs (a pool lends it for one),
        nor if the job has made it commit each statement: the next one would have no transaction.
        """
        connection = self._connection
        if self.is_nested or connection.errors_occurred or len(connection.run_on_commit) != 1:
            return False
        close_at: float | None = connection.close_at
        if close_at is not None and close_at <= time.monotonic():
            return False
        return not connection.connection.autocommit

    def keep(self) -> None:
        """Say that the job has committed, and that the thread has a next one for the block."""
        self._proof.plant()
        self._is_kept = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ValueError):  # not the last one where the job has left one of its own
            self._connection.execute_wrappers.remove(self._witness)
        if self._is_kept and error is None:
            self._connection.run_on_commit.clear()
            _kept.block, _kept.connection = self._block, self._connection
            _kept.session = self._connection.connection
        else:
            self._block.__exit__(kind, error, trace)


def kept_connection() -> BaseDatabaseWrapper | None:
    """Return the connection on which this thread keeps a block open."""
    return _kept.connection


def leave_kept_block() -> None:
    """Leave the block that this thread has kept, if any; its session may have ended meanwhile."""
    connection, block = _kept.connection, _forget()
    if block is None or connection is None:
        return
    try:
        block.__exit__(None, None, None)
    except Error:
        discard(connection)


def _take(connection: BaseDatabaseWrapper) -> Any:
    """Return the block that was kept on `connection` and is still open, None if there is none."""
    if _kept.connection is connection and connection.connection is _kept.session:
        return _forget()
    leave_kept_block()
    return None


def _forget() -> Any:
    """Keep no block any more; return it if it is open: a discarded connection took it along."""
    connection, block = _kept.connection, _kept.block
    _kept.block = _kept.connection = _kept.session = None
    return block if connection is not None and connection.in_atomic_block else None
