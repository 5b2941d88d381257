"""Clean connections around each job: nothing of one job, or of a receiver, reaches the next."""

from __future__ import annotations

import select
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.storage.connections import discard

_IDLE, _UNKNOWN = 0, 4  # libpq's PGTransactionStatusType; unknown: the session is gone


def open_transactions() -> list[BaseDatabaseWrapper]:
    """Return this thread's connections on which a transaction is open, also one by hand."""
    return [c for c in connections.all(initialized_only=True) if is_in_transaction(c)]


def is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a transaction is open: ``atomic()``, autocommit off, or a raw BEGIN.

    Django knows of the first only; the session itself knows of all.
    """
    if connection.in_atomic_block:
        return True
    session: Any = connection.connection
    if session is None:
        return False
    if connection.vendor == "sqlite":
        return bool(session.in_transaction)
    return _status(session) not in (_IDLE, _UNKNOWN)


def clean_connections() -> None:
    """Drop this thread's sessions that are gone, too old, or in a transaction somebody left open.

    Not for use inside a transaction of the caller's: it would be lost.
    """
    for each in connections.all(initialized_only=True):
        if is_in_transaction(each) or _is_gone(each.connection):
            discard(each)
        else:
            each.close_if_unusable_or_obsolete()


def _is_gone(session: Any) -> bool:
    """Return whether a PostgreSQL session has ended, without asking the server.

    An idle session has nothing to read: data means that the server said goodbye (or told of a
    changed setting, which costs one reconnect). A query to find out would double the cost of a
    small job.
    """
    if not hasattr(session, "pgconn"):
        return False
    if session.closed or _status(session) == _UNKNOWN:
        return True
    poll = select.poll()
    poll.register(session.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _status(session: Any) -> int:
    info = getattr(session, "info", None)
    return int(getattr(info, "transaction_status", _IDLE))
