"""Jobs asked for over a surface, once a key: conflicts, open transactions, and code of others."""

import threading

import pytest
from django.db import DatabaseError, connection, connections, transaction

from jobqueue import control
from jobqueue.compat import task_enqueued
from jobqueue.engine.idempotency import Done, once
from jobqueue.engine.operations import Desk
from jobqueue.exceptions import (
    DatabaseUnavailable,
    IdempotencyKeyInProgress,
    InvalidArgument,
    RowLocked,
    TransactionOpen,
)
from jobqueue.models import IdempotencyKey, Job
from jobqueue.storage import postgres_idempotency
from jobqueue.storage.connections import open_connection
from tests.api.tasks import CHARGE
from tests.storage.making import run_sql
from tests.waiting import wait_until

ACTOR = control.Actor("kim", "api")
ANSWER = control.StoredAnswer(201, {}, b"yes")
REQUEST = control.request_key("user:1", "jobs", "k", {})
SERIALIZATION_FAILURE = "DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$"
DEADLOCK = SERIALIZATION_FAILURE.replace("40001", "40P01")
TIME_OUT = SERIALIZATION_FAILURE.replace("40001", "57014")
IN_TRANSACTION = """
SELECT 1 FROM pg_stat_activity
WHERE state = 'idle in transaction' AND query LIKE '%jobqueue_idempotencykey%'
"""
on_postgres = pytest.mark.postgres_only("SQLite has no such errors")


def submit(request=REQUEST, count=1):
    jobs = [control.Submission(task=CHARGE, args=[n]) for n in range(count)]
    return control.submit(jobs, ACTOR, lambda results: ANSWER, request=request)


def failing(sql: str, times: int):
    """Return what a request does, which meets an error of the server so many times."""
    runs = []

    def run(storage):
        runs.append(len(runs))
        if len(runs) <= times:
            run_sql(connection, sql)
        return Done(ANSWER)

    return run, runs


def nothing_stored() -> bool:
    return not Job.objects.exists() and not IdempotencyKey.objects.exists()


def test_a_request_is_carried_out_once():
    first, second = submit(), submit()
    assert (first, second) == ((ANSWER, False), (ANSWER, True))
    assert Job.objects.get().created_by == "kim"


def test_without_a_key_it_is_carried_out_each_time():
    assert [submit(None).is_replay for _ in "ab"] == [False, False]
    assert Job.objects.count() == 2
    assert not IdempotencyKey.objects.exists()


@pytest.mark.parametrize("count", [0, 10_001])
def test_a_batch_has_bounds(count):
    with pytest.raises(InvalidArgument, match="1 to 10,000"):
        submit(count=count)
    assert nothing_stored()


# --- conflicts --------------------------------------------------------------------------------


@on_postgres
@pytest.mark.parametrize("error", [SERIALIZATION_FAILURE, DEADLOCK])
@pytest.mark.parametrize("request_", [REQUEST, None])
def test_after_a_conflict_all_of_it_is_run_again(error, request_):
    run, runs = failing(error, times=2)
    assert once(Desk(ACTOR, "default"), request_, run) == (ANSWER, False)
    assert runs == [0, 1, 2]


@on_postgres
def test_conflicts_without_end_are_a_lock_not_an_error():
    run, runs = failing(SERIALIZATION_FAILURE, times=100)
    with pytest.raises(RowLocked):
        once(Desk(ACTOR, "default"), REQUEST, run)
    assert len(runs) == 4
    assert nothing_stored()


@on_postgres
def test_a_time_out_of_the_server_is_no_verdict():
    run, _ = failing(TIME_OUT, times=1)
    with pytest.raises(DatabaseUnavailable, match="same idempotency key"):
        once(Desk(ACTOR, "default"), REQUEST, run)
    assert nothing_stored()


@on_postgres
def test_errors_of_our_own_stay_what_they_are():
    run, runs = failing("SELECT 1 / 0", times=1)
    with pytest.raises(DatabaseError, match="division by zero"):
        once(Desk(ACTOR, "default"), REQUEST, run)
    assert runs == [0]
    assert nothing_stored()


@on_postgres
@pytest.mark.parametrize("request_", [REQUEST, None])
def test_a_locked_table_is_not_waited_for_long(other, request_):
    other.connection.set_autocommit(False)
    run_sql(other.connection, "LOCK TABLE jobqueue_job IN EXCLUSIVE MODE")
    with pytest.raises(RowLocked):
        submit(request_)
    other.connection.rollback()
    assert nothing_stored()


@on_postgres
def test_the_second_request_waits_for_the_first_a_moment_only():
    """The first one is still at it: it has the key, and its process may be frozen."""
    found = []

    def first(storage):
        thread = threading.Thread(target=lambda: found.append(second()))
        thread.start()
        thread.join()
        return Done(ANSWER)

    def second():
        try:
            return submit()
        except IdempotencyKeyInProgress as error:
            return error
        finally:
            connections.close_all()

    once(Desk(ACTOR, "default"), REQUEST, first)
    assert isinstance(found[0], IdempotencyKeyInProgress)
    assert submit() == (ANSWER, True)


@on_postgres
def test_a_frozen_request_does_not_keep_its_key(monkeypatch):
    """The server ends its session; whoever repeats the request is first then."""
    monkeypatch.setattr(postgres_idempotency, "REQUEST_IDLE_SECONDS", 0.2)
    thawed = threading.Event()
    errors = []

    def frozen(storage):
        thawed.wait(60)
        return Done(ANSWER)

    def first():
        try:
            once(Desk(ACTOR, "default"), REQUEST, frozen)
        except DatabaseUnavailable as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=first)
    thread.start()
    wait_until(lambda: run_sql(connection, IN_TRANSACTION), "the first request to be frozen")
    assert submit() == (ANSWER, False)
    thawed.set()
    thread.join()
    assert len(errors) == 1
    assert submit() == (ANSWER, True)
    assert Job.objects.count() == 1


@pytest.mark.sqlite_only("PostgreSQL has many writers")
def test_a_busy_database_is_a_lock_not_an_error():
    writer = open_connection("default")
    writer.ensure_connection()
    run_sql(connection, "PRAGMA busy_timeout = 20")
    try:
        run_sql(writer, "BEGIN IMMEDIATE")
        with pytest.raises(RowLocked, match="Nothing was changed"):
            submit()
        run_sql(writer, "ROLLBACK")
        assert submit() == (ANSWER, False)
    finally:
        writer.close()
        connection.close()


# --- transactions of others -------------------------------------------------------------------


def test_inside_a_transaction_it_is_refused_before_any_statement(django_assert_num_queries):
    with transaction.atomic():
        Job.objects.exists()
        with django_assert_num_queries(0), pytest.raises(TransactionOpen, match="middleware"):
            submit()
        assert nothing_stored()  # and this transaction goes on


def test_without_autocommit_nobody_would_commit_it():
    transaction.set_autocommit(False)
    try:
        with pytest.raises(TransactionOpen):
            submit()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert nothing_stored()


@pytest.mark.parametrize("request_", [REQUEST, None])
def test_a_receiver_cannot_make_it_vanish_without_an_error(request_):
    """Django leaves a block that is marked for rollback without a word."""

    def receiver(**_):
        transaction.set_rollback(True)

    task_enqueued.connect(receiver)
    try:
        with pytest.raises((RuntimeError, DatabaseError)):
            submit(request_)
    finally:
        task_enqueued.disconnect(receiver)
    assert nothing_stored()


@on_postgres
@pytest.mark.parametrize("request_", [REQUEST, None])
def test_a_swallowed_database_error_cannot_either(request_):
    """COMMIT of a transaction with a failed statement rolls back, and says so to nobody."""

    def run(storage):
        with pytest.raises(DatabaseError):
            run_sql(connection, "SELECT 1 / 0")
        return Done(ANSWER)

    with pytest.raises((RuntimeError, DatabaseError)):
        once(Desk(ACTOR, "default"), request_, run)
    assert nothing_stored()


def test_hints_go_out_after_the_commit(monkeypatch):
    from jobqueue import hints

    seen = []
    monkeypatch.setattr(
        hints, "send", lambda *_: seen.append((connection.in_atomic_block, Job.objects.count()))
    )
    submit()
    assert seen == [(False, 1)]
