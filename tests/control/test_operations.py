"""How operations are carried out: actors, isolation, locks."""

import pytest
from django.db import connection, transaction

from jobqueue import control
from jobqueue.engine import operations
from jobqueue.engine.operations import Desk
from jobqueue.exceptions import InvalidArgument, RowLocked
from jobqueue.storage.connections import transaction_on
from tests.storage.making import insert, row, run_sql


@pytest.mark.parametrize(
    ("name", "surface"), [("", "shell"), ("k" * 256, "shell"), ("a\x00", "api"), ("kim", "mail")]
)
def test_actor_that_cannot_be_recorded_is_refused(name, surface):
    with pytest.raises(InvalidArgument):
        control.Actor(name, surface)


@pytest.mark.postgres_only("SQLite has one isolation level")
def test_operation_runs_at_read_committed_whatever_the_project_sets(actor):
    connection.close()
    connection.settings_dict["OPTIONS"]["isolation_level"] = 2  # psycopg's REPEATABLE READ
    connection.isolation_level = None
    try:
        connection.get_connection_params()
        level = Desk(actor, "default").transact(
            lambda storage: run_sql(storage.connection, "SHOW transaction_isolation")
        )
    finally:
        del connection.settings_dict["OPTIONS"]["isolation_level"]
        connection.close()
    assert level == [("read committed",)]


@pytest.mark.postgres_only("SQLite has one isolation level")
def test_callers_transaction_keeps_its_settings(actor):
    with transaction.atomic():
        run_sql(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        level = Desk(actor, "default").transact(
            lambda storage: run_sql(storage.connection, "SHOW transaction_isolation")
        )
    assert level == [("repeatable read",)]


def test_busy_database_is_reported_as_locked(storage, other, actor, monkeypatch):
    """Two operators, one of whom holds what the other needs for longer than anybody waits."""
    monkeypatch.setattr(operations, "LOCK_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(operations, "LOCK_TRIES", 2)
    insert(storage)
    control.pause("mail", actor)
    with busy(other), impatient(), pytest.raises(RowLocked):
        control.resume("mail", actor)
    assert str(control.resume("mail", actor)) == "1 resumed"


def busy(other):
    """A transaction that has changed the queue's row and does not end."""
    context = transaction_on(other.connection)

    class Held:
        def __enter__(self):
            context.__enter__()
            run_sql(other.connection, "UPDATE jobqueue_queue SET paused_reason = 'mine'")

        def __exit__(self, *error):
            return context.__exit__(*error)

    return Held()


def impatient():
    """Django's connection on SQLite waits a moment for the write lock, not twenty seconds."""

    class Impatient:
        def __enter__(self):
            if connection.vendor == "sqlite":
                run_sql(connection, "PRAGMA busy_timeout = 50")

        def __exit__(self, *error):
            connection.close()

    return Impatient()


def test_unexpected_error_is_not_hidden_behind_a_retry(actor):
    calls = []

    def fail(storage):
        calls.append(1)
        raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        Desk(actor, "default").transact(fail)
    assert calls == [1]


def test_serialization_failure_is_run_again(storage, actor):
    (job_id,) = insert(storage)
    calls = []

    def once_refused(desk_storage):
        calls.append(1)
        if len(calls) == 1:
            raise serialization_failure()
        return desk_storage.cancel_waiting([job_id], "x")

    if connection.vendor == "postgresql":
        assert Desk(actor, "default").transact(once_refused) == [job_id]
        assert row(job_id).state == "cancelled"


def serialization_failure():
    from django.db import OperationalError

    class Cause(Exception):
        sqlstate = "40001"

    error = OperationalError("could not serialize access")
    error.__cause__ = Cause()
    return error
