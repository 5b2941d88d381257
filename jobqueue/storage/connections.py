"""Database connections of our own, and how a worker process prepares its sessions.

Our own connections are Django connection wrappers outside ``django.db.connections`` (no pool, no
CONN_MAX_AGE), at READ COMMITTED whatever the project sets, and where sessions are proven direct
also whatever the server sets. In a worker, every session (also those
that jobs open through Django) bears the worker's identity as application_name, so that a
supervisor can end them, and notices a vanished peer well within the lease.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend

from jobqueue.ids import session_name
from jobqueue.storage.protocol import storage_for

DIRECT_SETTING = "JOBQUEUE_DIRECT"
"""Key in a connection's settings: its sessions are proven to reach the server itself."""
CANCEL_SECONDS = 1.0
"""How long asking for the end of a statement may take."""
_ACTIVE = 1
"""Of libpq's PGTransactionStatusType: a statement is in progress."""


def open_connection(
    alias: str,
    *,
    identity: UUID | None = None,
    lease_seconds: float = 15.0,
    direct: bool = False,
    statement_timeout: float | None = None,
) -> BaseDatabaseWrapper:
    """Return a new, not yet connected wrapper for database `alias`; the caller closes it.

    Usable from any one thread at a time. With `identity` its session bears that name; with
    `direct` (a session proven direct) it also sets server-side session options.
    """
    databases = copy.deepcopy(connections.settings[alias])
    settings_options = databases.setdefault("OPTIONS", {})
    backend = load_backend(databases["ENGINE"])
    wrapper: BaseDatabaseWrapper = backend.DatabaseWrapper(databases, alias)
    wrapper.inc_thread_sharing()
    if wrapper.vendor == "postgresql":
        settings_options.pop("pool", None)
        settings_options.pop("isolation_level", None)
        databases["CONN_MAX_AGE"] = None
        _name_session(settings_options, identity, lease_seconds, direct)
        databases[DIRECT_SETTING] = direct
        if direct:
            # For statements outside a transaction, too; the server may have another default.
            limits = r"-c default_transaction_isolation=read\ committed"
            if statement_timeout is not None:
                limits += f" -c statement_timeout={int(statement_timeout * 1000)}"
            settings_options["options"] = f"{settings_options['options']} {limits}"
    return wrapper


def prepare_process(alias: str, identity: UUID, lease_seconds: float, direct: bool) -> None:
    """Make every session that this process opens on `alias` bear `identity`, and keep it open.

    Django's default (CONN_MAX_AGE 0) would connect anew for every job; the engine looks after
    broken sessions itself (`jobqueue.engine.hygiene`). An age that the project gives is kept.
    To be called once, before any thread opens a connection: it changes the process's settings.
    """
    connections[alias].close()
    params = connections.settings[alias]
    if not params.get("CONN_MAX_AGE") and "pool" not in params.get("OPTIONS", {}):
        params["CONN_MAX_AGE"] = None
    if connections[alias].vendor == "postgresql":
        params[DIRECT_SETTING] = direct
        _name_session(params.setdefault("OPTIONS", {}), identity, lease_seconds, direct)


def is_direct(alias: str) -> bool:
    """Return whether a session on `alias` reaches the server itself (no pooler between)."""
    connection = open_connection(alias)
    try:
        return storage_for(connection).is_direct()
    finally:
        connection.close()


@contextmanager
def transaction_on(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """A transaction on one of our own connections (``atomic`` knows only Django's).

    Inside one that is open already a part of it; on Django's inside a TestCase, the test's own.
    """
    is_open = connection.connection is not None and not connection.autocommit
    if connection.in_atomic_block or is_open:
        yield
        return
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    try:
        yield
        connection.commit()
    except BaseException:
        with suppress(Exception):
            connection.rollback()
        raise
    finally:
        with suppress(Exception):
            connection.set_autocommit(True)


@contextmanager
def undoable_on(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """A transaction, or inside an open one a savepoint: an error leaves the caller's as it was."""
    connection.ensure_connection()
    if not is_open(connection):
        with transaction_on(connection):
            yield
        return
    savepoint = str(connection.savepoint())
    try:
        yield
    except BaseException:
        with suppress(Exception):  # the session may be gone, and the error says so
            connection.savepoint_rollback(savepoint)
            connection.savepoint_commit(savepoint)
        raise
    connection.savepoint_commit(savepoint)


def is_open(connection: BaseDatabaseWrapper) -> bool:
    """Return whether `connection` is inside a transaction, whoever began it."""
    opened = connection.connection is not None
    return connection.in_atomic_block or (opened and not connection.autocommit)


def discard(connection: BaseDatabaseWrapper) -> None:
    """Drop the session of `connection` in whatever state it is; the next use opens a new one.

    ``close()`` refuses inside an atomic block that a job left open; a connection under which that
    happened must not serve the next job.
    """
    with suppress(Exception):
        connection._close()  # type: ignore[attr-defined] # close() keeps the state of open blocks
    connection.connection = None
    connection.in_atomic_block = False
    connection.savepoint_ids = []
    connection.atomic_blocks = []
    connection.needs_rollback = False
    connection.closed_in_transaction = False
    connection.run_on_commit = []
    connection.errors_occurred = False


def cancel_statement(connection: BaseDatabaseWrapper) -> None:
    """Ask the database to end the statement that another thread waits for, if it waits for one.

    Never raises, and waits `CANCEL_SECONDS` at most. Does nothing where libpq (before 17) could
    wait for much longer.
    """
    session: Any = connection.connection
    with suppress(Exception):
        if connection.vendor == "sqlite" and session is not None:
            session.interrupt()
        elif session is not None and _is_active(session) and _can_cancel_safely():
            session.cancel_safe(timeout=CANCEL_SECONDS)


def _is_active(session: Any) -> bool:
    return int(session.pgconn.transaction_status) == _ACTIVE


def _can_cancel_safely() -> bool:
    from psycopg import capabilities

    return bool(capabilities.has_cancel_safe())


def _name_session(
    options: dict[str, Any], identity: UUID | None, lease_seconds: float, direct: bool
) -> None:
    third = max(int(lease_seconds * 1000 / 3), 500)
    if identity is not None:
        options["application_name"] = session_name(identity)
    options.setdefault("connect_timeout", max(int(lease_seconds / 3), 2))
    options.setdefault("keepalives", 1)
    options.setdefault("keepalives_idle", max(int(lease_seconds / 3), 1))
    options.setdefault("keepalives_interval", 1)
    options.setdefault("keepalives_count", 3)
    options.setdefault("tcp_user_timeout", third)
    if direct:
        ours = f"-c client_connection_check_interval={third}"
        options["options"] = f"{options.get('options', '')} {ours}".strip()
