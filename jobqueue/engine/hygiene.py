"""Clean connections around each job: nothing of one job, or of a receiver, reaches the next.

Runs twice for every job, so it asks the server nothing and looks only at sessions that are open.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.storage.connections import discard

_IDLE, _IN_ERROR, _UNKNOWN = 0, 3, 4
"""Of libpq's PGTransactionStatusType; unknown: the session is gone."""


def open_transactions() -> list[BaseDatabaseWrapper]:
    """Return this thread's connections on which a transaction is open, also one by hand."""
    return [c for c in thread_connections() if is_in_transaction(c)]


def is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a transaction is open: ``atomic()``, autocommit off, or a raw BEGIN.

    Django knows of the first only; the session itself knows of all.
    """
    session: Any = connection.connection
    if connection.in_atomic_block or session is None:
        return connection.in_atomic_block
    if connection.vendor == "sqlite":
        return bool(session.in_transaction)
    return _status(session) not in (_IDLE, _UNKNOWN)


def is_broken(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the open transaction can only be rolled back."""
    return connection.needs_rollback or _status(connection.connection) == _IN_ERROR


def drop_gone() -> None:
    """Drop this thread's sessions that have ended since they were last used."""
    for each in thread_connections():
        if each.connection is not None and not each.in_atomic_block and _is_gone(each.connection):
            discard(each)


def clean_connections(but: BaseDatabaseWrapper | None = None) -> None:
    """Drop this thread's sessions that are broken, too old, or in a transaction somebody left open.

    but: a connection whose session to leave alone. Not for use inside another transaction of the
    caller's: it would be lost.
    """
    for each in thread_connections():
        if each.connection is None and not each.in_atomic_block:
            continue
        each.queries_log.clear()
        if each is but:
            continue
        if is_in_transaction(each) or _status(each.connection) == _UNKNOWN:
            discard(each)
        elif each.errors_occurred or each.close_at is not None or _is_manual(each):
            each.close_if_unusable_or_obsolete()


def close_sessions() -> None:
    """Close this thread's sessions whatever they are at; open blocks can only roll back then."""
    for each in thread_connections():
        with suppress(Exception):
            if hasattr(each.connection, "pgconn"):
                each.connection.close()  # itself: a pool would keep it
        with suppress(Exception):
            each.close()


_thread = threading.local()
_of_threads: dict[int, Sequence[BaseDatabaseWrapper]] = {}


def thread_connections() -> Sequence[BaseDatabaseWrapper]:
    """Return this thread's connection wrappers, of all databases: they last as long as it does.

    Remembered because asking Django takes longer than all else that a small job needs.
    """
    known: Sequence[BaseDatabaseWrapper] | None = getattr(_thread, "wrappers", None)
    if known is None:
        known = _thread.wrappers = _of_threads[threading.get_ident()] = connections.all()
    return known


def connections_of(thread: int) -> Sequence[BaseDatabaseWrapper]:
    """Return the wrappers of another thread, by its ident, as far as it has asked for them here."""
    return _of_threads.get(thread, ())


def _is_manual(connection: BaseDatabaseWrapper) -> bool:
    """Return whether autocommit was left off: the next ``atomic()`` would not commit."""
    return bool(connection.autocommit != connection.settings_dict["AUTOCOMMIT"])


def _is_gone(session: Any) -> bool:
    """Return whether a PostgreSQL session has ended, without asking the server.

    An idle session has nothing to read: data means that the server said goodbye (or told of a
    changed setting, which costs one reconnect).
    """
    if not hasattr(session, "pgconn"):
        return False
    if session.closed:
        return True
    poll = select.poll()
    poll.register(session.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _status(session: Any) -> int:
    pgconn = getattr(session, "pgconn", None)
    return int(getattr(pgconn, "transaction_status", _IDLE))
