"""What an error says is decided by the database's code, where it gives one."""

import sqlite3
from types import SimpleNamespace

import pytest
from django.db import (
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    transaction,
)

from jobqueue.exceptions import LeaseLost
from jobqueue.models import Attempt
from jobqueue.storage import storage_for
from jobqueue.storage.errors import is_away, may_pass
from jobqueue.storage.rows import lease_errors
from tests.storage.making import claimed
from tests.storage.test_constraints import create_attempt

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


# --- constraints ----------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_success_that_stands_already_is_a_lost_lease(storage):
    """Left by a run that a failover forgot: the claim's own numbers look right."""
    held = claimed(storage)
    for n, changes in enumerate(({"fence": held.fence}, {"outcome": "succeeded"}), start=7):
        values = {"number": n, "fence": n, "outcome": "lost", **changes}
        Attempt.objects.filter(job_id=held.id).delete()
        create_attempt(held.id, **values)
        with pytest.raises(LeaseLost) as caught, transaction.atomic():
            storage_for(connection).finish_one(held, "1", 0.0)
        assert caught.value.run == (held.id, held.fence)


@pytest.mark.django_db(transaction=True)
def test_a_constraint_of_somebody_elses_is_none(storage):
    """Its name, or its message, may hold the name of ours."""
    held = claimed(storage)
    if connection.vendor == "sqlite":
        error = IntegrityError("CHECK constraint failed: not_jobqueue_attempt_one_success")
    else:
        error = IntegrityError("jobqueue_attempt")
        error.__cause__ = Exception()
        error.__cause__.diag = SimpleNamespace(constraint_name="my_jobqueue_attempt_copy")
    with pytest.raises(IntegrityError), lease_errors(held):
        raise error
