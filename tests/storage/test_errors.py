"""What an error says is decided by the database's code, where it gives one."""

import sqlite3

import pytest
from django.db import DataError, InterfaceError, InternalError, OperationalError

from jobqueue.storage.errors import is_away, may_pass

AWAY, PASSING, REFUSED = (True, True), (False, True), (False, False)


def postgres(error, state):
    error.__cause__ = Exception()
    error.__cause__.sqlstate = state
    return error


def sqlite(error, code):
    error.__cause__ = Exception()
    error.__cause__.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OperationalError("the connection is closed"), AWAY),
        (InterfaceError("cursor is closed"), AWAY),
        (postgres(OperationalError(), None), AWAY),
        *[
            (postgres(OperationalError(), state), AWAY)
            for state in ("08006", "08P01", "57P01", "57P02", "57P03", "57P05")
        ],
        *[(postgres(InternalError(), state), AWAY) for state in ("25006", "25P03")],
        *[
            (postgres(OperationalError(), state), PASSING)
            for state in ("57014", "55P03", "53100", "53200", "53300", "40001", "40P01")
        ],
        (postgres(OperationalError(), "54000"), REFUSED),
        (postgres(InternalError(), "XX000"), REFUSED),
        (InternalError("no code"), REFUSED),
        (postgres(DataError(), "22P05"), REFUSED),
        *[
            (sqlite(OperationalError(), code), AWAY)
            for code in (
                sqlite3.SQLITE_BUSY,
                sqlite3.SQLITE_BUSY_SNAPSHOT,
                sqlite3.SQLITE_FULL,
                sqlite3.SQLITE_IOERR,
                sqlite3.SQLITE_READONLY,
            )
        ],
        (sqlite(OperationalError(), sqlite3.SQLITE_ERROR), REFUSED),
        (ValueError("ours"), REFUSED),
    ],
)
def test_the_code_decides(error, expected):
    assert (is_away(error), may_pass(error)) == expected
