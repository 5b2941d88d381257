"""What is known about a COMMIT: the flag planted by it, and whether the connection is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError

from jobqueue.storage.errors import sqlstate

SERIALIZATION_FAILURES = frozenset({"40001", "40P01"})
_STATEMENT_FORGOTTEN = "26000"
IN_FAILED_TRANSACTION = "25P02"


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


class Witness:
    """An execute wrapper that remembers the last error of a statement.

    A job may catch it and go on, but its transaction is broken: what fails then is the finish,
    with an error that says nothing about the cause.
    """

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: DatabaseError | None = None

    def __call__(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        """Run the statement; see Django's ``execute_wrapper``."""
        try:
            return execute(sql, params, many, context)
        except DatabaseError as error:
            if sqlstate(error) != IN_FAILED_TRANSACTION:
                self.error = error
            raise

    def cause_of(self, error: BaseException) -> BaseException:
        """Return the error that a job swallowed, if `error` only says that one was; or `error`."""
        cause: BaseException | None = None
        if isinstance(error, TransactionManagementError):
            cause = error.__cause__  # Django's own memory: set where it refuses further statements
        elif sqlstate(error) == IN_FAILED_TRANSACTION:
            cause = self.error
        if cause is None:
            return error
        cause.add_note(
            "The task went on after this error, but its transaction was broken by it, so nothing "
            "was committed. To go on, catch it outside of a `with transaction.atomic():` block."
        )
        return cause


def backend_pid(connection: BaseDatabaseWrapper) -> int | None:
    """Return the server-side pid of an open PostgreSQL session, else None."""
    info = getattr(connection.connection, "info", None)
    return getattr(info, "backend_pid", None)


def is_connection_lost(error: BaseException, vendor: str, session: Any) -> bool:
    """Return whether `error` left the transaction's session dead, so that its fate is unknown.

    session: the driver's connection in which the transaction began. Not what the wrapper holds
    now: Django opens a new one while it leaves ``atomic()``. An error of any class may be the
    news: a session that the server ended for being idle in its transaction says InternalError.
    """
    if vendor != "postgresql":
        return False  # SQLite has no network between commit and answer
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    return session is None or bool(session.closed)


def is_serialization_failure(error: BaseException) -> bool:
    """Return whether the server asks for the transaction to be run again."""
    return sqlstate(error) in SERIALIZATION_FAILURES


def asks_to_run_again(error: BaseException) -> bool:
    """Return whether a finish or COMMIT failed with `error` for no fault of the job's.

    Also where its session has lost our prepared finish (DEALLOCATE ALL).
    """
    return is_serialization_failure(error) or sqlstate(error) == _STATEMENT_FORGOTTEN
