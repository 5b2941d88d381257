"""What a database error says: about the server, about the moment, or about a row.

Decided by the code that the database gives (PostgreSQL's SQLSTATE, SQLite's result code), never
by the text, and not by the class of Django's exception alone: OperationalError is all of it.
"""

from __future__ import annotations

import sqlite3

from django.db import InterfaceError, InternalError, OperationalError

LOCK_NOT_AVAILABLE = "55P03"
_AWAY = ("08", "57P", "25")
"""Connection lost; shut down, starting up, dropped; read only, or ended while in a transaction."""
_PROGRAM_LIMIT = "54"
"""Too large, too deep, too many: the next try is too."""
_SQLITE_ROW = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_RANGE})


def sqlstate(error: BaseException) -> str | None:
    """Return the SQLSTATE that the server gave for an error of Django's, None if there is none."""
    return getattr(error.__cause__, "sqlstate", None)


def said(error: BaseException) -> str:
    """Return what the server said of an error, without what it quotes of statement and values."""
    return getattr(getattr(error.__cause__, "diag", None), "message_primary", None) or ""


def violated_constraint(error: BaseException) -> str:
    """Return the name of the constraint that an IntegrityError is about.

    SQLite names its columns instead, in the whole of its message.
    """
    diagnosis = getattr(error.__cause__, "diag", None)
    return str(error) if diagnosis is None else diagnosis.constraint_name or ""


def is_away(error: BaseException) -> bool:
    """Return whether `error` is about the session or the server, whatever was sent.

    So the same may be asked again later, on a new session. A server that takes no writes for a
    while (a standby that is not promoted yet) is one of these. An error without any code is the
    driver's own: it has no session to speak on.
    """
    if not isinstance(error, OperationalError | InterfaceError | InternalError):
        return False
    if (code := _sqlite_code(error)) is not None:
        return code not in _SQLITE_ROW
    state = sqlstate(error)
    return not isinstance(error, InternalError) if state is None else state.startswith(_AWAY)


def may_pass(error: BaseException) -> bool:
    """Return whether the same may succeed a moment later, if perhaps not as part of as much.

    Beside a database that is away: a time-out, a lock, a conflict, memory or disk that ran out.
    """
    if is_away(error):
        return True
    if not isinstance(error, OperationalError | InterfaceError) or _sqlite_code(error) is not None:
        return False
    return not (sqlstate(error) or "").startswith(_PROGRAM_LIMIT)


def _sqlite_code(error: BaseException) -> int | None:
    """Return SQLite's primary result code, None for other databases."""
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF
