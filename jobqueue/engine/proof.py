"""What is known about a COMMIT: the flag planted by it, and whether the connection is gone."""

from __future__ import annotations

from typing import Any

from django.db import InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

SERIALIZATION_FAILURES = frozenset({"40001", "40P01"})


class CommitProof:
    """A flag set by our own first on_commit callback: the only proof that a COMMIT succeeded.

    An exception proves nothing (a later callback may have raised it), and neither does its
    absence (``set_rollback(True)`` leaves the block silently).
    """

    __slots__ = ("planted",)

    def __init__(self) -> None:
        self.planted = False

    def plant(self) -> None:
        """Record that the transaction has committed."""
        self.planted = True


def backend_pid(connection: BaseDatabaseWrapper) -> int | None:
    """Return the server-side pid of an open PostgreSQL session, else None."""
    info = getattr(connection.connection, "info", None)
    return getattr(info, "backend_pid", None)


def is_connection_lost(error: BaseException, vendor: str, session: Any) -> bool:
    """Return whether `error` left the transaction's session dead, so that its fate is unknown.

    session: the driver's connection in which the transaction began. Not what the wrapper holds
    now: Django opens a new one while it leaves ``atomic()``.
    """
    if vendor != "postgresql":
        return False  # SQLite has no network between commit and answer
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    return session is None or bool(session.closed)


def is_serialization_failure(error: BaseException) -> bool:
    """Return whether the server asks for the transaction to be run again."""
    return getattr(error.__cause__, "sqlstate", None) in SERIALIZATION_FAILURES
