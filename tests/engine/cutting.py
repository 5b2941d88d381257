"""Ways to lose a database session at an exact moment (PostgreSQL)."""

import os
import socket
from typing import Any

import psycopg
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.waiting import wait_until

Session = psycopg.Connection[Any]


def session_pid(wrapper: BaseDatabaseWrapper = connection) -> int:
    """Return the server's pid of an open session."""
    wrapper.ensure_connection()
    return wrapper.connection.info.backend_pid


def terminate(admin: Session, pid: int) -> None:
    """End a session from another one, and wait until the server has forgotten it."""
    admin.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
    assert not is_there(admin, pid)


def is_there(admin: Session, pid: int) -> bool:
    """Return whether the server still has the session."""
    row = admin.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
    return bool(row and row[0])


def cut_line(raw: Session) -> None:
    """Break the network under a session: the server may not have noticed yet."""
    line = socket.socket(fileno=os.dup(raw.pgconn.socket))
    line.shutdown(socket.SHUT_RDWR)
    line.close()


def commit_and_lose_the_answer(admin: Session, raw: Session) -> None:
    """Let COMMIT succeed on the server; the client finds a dead line where the answer was."""
    raw.pgconn.send_query(b"COMMIT")
    raw.pgconn.flush()
    wait_until(lambda: _is_idle(admin, raw.info.backend_pid), "the COMMIT")
    cut_line(raw)


def _is_idle(admin: Session, pid: int) -> bool:
    row = admin.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
    return row == ("idle",)
