"""Transactions on SQLite: the write lock is taken at the start, and waiting for it is ours.

SQLite has one writer at a time and answers "database is locked" to the rest. A method marked
`writes` runs in one ``BEGIN IMMEDIATE`` transaction, so that what it reads is still true when it
writes, and is run again as a whole while the database is busy. A method marked `reads` is one or
more plain reads, run again in the same way.

Inside a transaction that somebody else opened (an ``atomic`` block, autocommit off) both run the
method as it is: no transaction, no second try. Repeating one statement there would hide the first
error and split what the caller meant to be one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.storage.connections import is_open, transaction_on
from jobqueue.storage.protocol import Storage

BUSY_SECONDS = 30.0
"""How long a method of ours waits for the write lock, beyond which its caller gets the error: an
atomic job holds the lock for as long as it runs."""
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.2
_BUSY, _LOCKED = 5, 6  # SQLite's primary result codes; LOCKED comes from a shared cache in memory


def reads[S: Storage, **P, R](
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Repeat a reading method while the database is busy, unless in a foreign transaction."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if is_foreign(self.connection):
            return method(self, *args, **kwargs)
        return persistently(lambda: method(self, *args, **kwargs))

    return run


def writes[S: Storage, **P, R](
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Run a method in one transaction that holds the write lock, unless in a foreign one."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if is_foreign(self.connection):
            return method(self, *args, **kwargs)

        def once() -> R:
            with immediate_on(self.connection):
                return method(self, *args, **kwargs)

        return persistently(once)

    return run


def is_foreign(connection: BaseDatabaseWrapper) -> bool:
    """Return whether `connection` is inside a transaction that we did not open."""
    return is_open(connection)


@contextmanager
def immediate_on(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """A transaction that takes the write lock at its start, whatever mode the project sets.

    A deferred one that has read and then writes fails at once if another has written meanwhile.
    """
    connection.ensure_connection()
    mode = connection.transaction_mode  # type: ignore[attr-defined] # SQLite's wrapper only
    connection.transaction_mode = "IMMEDIATE"  # type: ignore[attr-defined]
    try:
        with transaction_on(connection):
            yield
    finally:
        connection.transaction_mode = mode  # type: ignore[attr-defined]


def persistently[R](run: Callable[[], R], seconds: float = BUSY_SECONDS) -> R:
    """Return ``run()``, repeated with jittered pauses while it fails because of other writers.

    Raise the last error once `seconds` have passed.
    """
    give_up = time.monotonic() + seconds
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return run()
        except OperationalError as error:
            if not is_busy(error) or time.monotonic() + pause > give_up:
                raise
        time.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def is_busy(error: BaseException) -> bool:
    """Return whether `error` says that somebody else holds a lock, and nothing worse."""
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (_BUSY, _LOCKED)
