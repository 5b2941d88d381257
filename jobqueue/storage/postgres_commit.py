"""Finish and COMMIT in one round trip, where the session allows it.

The guard fails on the server, which then never comes to the COMMIT behind it. The finish is
prepared once a session, as planning costs more than running it: by SQL, since psycopg deallocates
every statement of a session, ours too, at the first ROLLBACK after it has prepared one. Both go
out past the cursor, whose bookkeeping would cost as much as the rest of a small job.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.errors import InvalidSqlStatementName
from psycopg.pq import Escaping

from jobqueue.storage.connections import DIRECT_SETTING
from jobqueue.storage.postgres_wire import send, speaks_utf8
from jobqueue.storage.records import Claim
from jobqueue.storage.rows import lease_errors
from jobqueue.storage.statements import statement

_PREPARED_MARK = "_jobqueue_finish_is_prepared"
_PARAMETERS = ("id", "fence", "worker", "result", "started_ago")
_TYPES = "uuid, bigint, uuid, text, float8"


def may_go_together(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a finish on `connection` may take its COMMIT along.

    Not through a pooler, which knows nothing of our prepared statement; not where psycopg prepares
    statements itself; not in a savepoint, as a TestCase never commits; not where the job has
    changed the session's encoding.
    """
    if not connection.settings_dict.get(DIRECT_SETTING) or connection.savepoint_ids:
        return False
    connection.ensure_connection()
    session = connection.connection
    return session.prepare_threshold is None and speaks_utf8(session)


def finish_and_commit(
    connection: BaseDatabaseWrapper, claim: Claim, result: str, started_ago: float
) -> None:
    """Finish `claim` and commit. Raise LeaseLost, or what the COMMIT raises: nothing is committed
    then.
    """
    connection.validate_no_broken_transaction()
    session = connection.connection
    with lease_errors(claim), connection.wrap_database_errors:
        # All in quotes: such a constant is of the parameter's type at once, and is not cast to it.
        text = statement("postgresql", "finish_and_commit") % {
            "id": f"'{claim.id}'",
            "fence": f"'{claim.fence}'",
            "worker": f"'{claim.worker}'",
            "result": _literal(session, result),
            "started_ago": f"'{started_ago:.6f}'",
        }
        if not getattr(session, _PREPARED_MARK, False):
            send(session, _prepare_finish())
            setattr(session, _PREPARED_MARK, True)
        try:
            send(session, text)
        except InvalidSqlStatementName:  # somebody has sent DEALLOCATE ALL
            setattr(session, _PREPARED_MARK, False)
            raise


def _literal(session: psycopg.Connection[Any], text: str) -> str:
    if "\0" in text:  # libpq would take it for the end
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return bytes(Escaping(session.pgconn).escape_literal(text.encode())).decode()


@cache
def _prepare_finish() -> str:
    """Return ``finish_one.sql`` as a statement that a session prepares once."""
    text = statement("postgresql", "finish_one", limit_idle="")
    for number, name in enumerate(_PARAMETERS, start=1):
        text = text.replace(f"%({name})s", f"${number}")
    return f"PREPARE jobqueue_finish ({_TYPES}) AS {text}"
