"""Statements sent through libpq itself: a cursor's bookkeeping costs more than some of them do.

What a cursor of psycopg's does besides is left to the caller: no transaction is begun, nothing is
adapted, and nobody but the server sees the statement. Errors are psycopg's own.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

_BINARY, _TEXT = 1, 0
_PARAMETER = re.compile(r"%\((\w+)\)s")


class ArrayType(NamedTuple):
    """Object ids of PostgreSQL's, which are the same on every server: an array's and its items'."""

    oid: int
    item: int


BIGINTS = ArrayType(1016, 20)
FLOATS = ArrayType(1022, 701)
TEXTS = ArrayType(1009, 25)
UUIDS = ArrayType(2951, 2950)
UUID_OID = UUIDS.item
TEXT_OID = TEXTS.item


class Value(NamedTuple):
    """A parameter in PostgreSQL's binary form."""

    oid: int
    data: bytes


def array(kind: ArrayType, items: Sequence[bytes]) -> Value:
    """Return a one-dimensional array of items that are in binary form and not NULL."""
    if not items:
        return Value(kind.oid, struct.pack(">iiI", 0, 0, kind.item))
    head = struct.pack(">iiIii", 1, 0, kind.item, len(items), 1)
    sizes = [len(item).to_bytes(4) for item in items]
    if len(set(sizes)) == 1:
        return Value(kind.oid, head + sizes[0] + sizes[0].join(items))
    parts = (part for pair in zip(sizes, items, strict=True) for part in pair)
    return Value(kind.oid, head + b"".join(parts))


def speaks_utf8(session: psycopg.Connection[Any]) -> bool:
    """Return whether the server reads text as it is sent here; a job may have changed that."""
    return session.pgconn.parameter_status(b"client_encoding") == b"UTF8"


def send(session: psycopg.Connection[Any], text: str) -> None:
    """Run statements that answer nothing of use. Raise what psycopg's own cursor would."""
    with session.lock:
        answer = session.pgconn.exec_(text.encode())
    if answer.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        raise _error(session, answer)


def ask(session: psycopg.Connection[Any], sql: str, values: Mapping[str, Value]) -> list[list[str]]:
    """Run one statement with ``%(name)s`` parameters; return its rows as text, none of it NULL.

    The server plans it with its values. Raise what psycopg's own cursor would.
    """
    text, names = _numbered(sql)
    given = [values[name] for name in names]
    with session.lock:
        answer = session.pgconn.exec_params(
            text,
            [value.data for value in given],
            [value.oid for value in given],
            [_BINARY] * len(given),
            _TEXT,
        )
    if answer.status != ExecStatus.TUPLES_OK:
        raise _error(session, answer)
    columns = range(answer.nfields)
    return [
        [(answer.get_value(row, column) or b"").decode() for column in columns]
        for row in range(answer.ntuples)
    ]


@cache
def _numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """Return a statement with its parameters numbered, and their names in that order."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(sql)))
    text = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", sql)
    return text.encode(), names


def _error(session: psycopg.Connection[Any], answer: PGresult) -> psycopg.Error:
    if session.closed:
        return psycopg.OperationalError(answer.get_error_message())
    return error_from_result(answer)
