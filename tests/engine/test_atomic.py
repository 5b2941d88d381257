"""Atomic tasks: the function's writes and the job's completion are one transaction."""

import pytest
from django.db import IntegrityError, connection, connections, transaction

from tests.app.models import Effect
from tests.engine.bench import Bench, leave
from tests.storage.making import run_sql

DUPLICATE = 1_000


def break_constraint(_context=None):
    """Insert the same primary key twice."""
    Effect.objects.create(pk=DUPLICATE, job_id="x")
    Effect.objects.create(pk=DUPLICATE, job_id="x")


# --- together ----------------------------------------


def test_effect_and_finish_are_committed_together(bench: Bench):
    ran = bench.run(lambda context: leave(context) or {"paid": True})
    assert ran.effects == ["done"]
    assert (ran.state, ran.job.result) == ("succeeded", {"paid": True})
    assert (ran.attempt.outcome, ran.attempt.fence) == ("succeeded", 1)


def test_effect_and_finish_are_invisible_until_the_commit(bench: Bench):
    seen = []

    def body(context):
        leave(context)
        rows = run_sql(bench.storage.connection, "SELECT count(*) FROM app_effect")
        seen.append((rows[0][0], len(bench.storage.running_of([bench.identity]))))

    ran = bench.run(body)
    assert seen == [(0, 1)]
    assert ran.effects == ["done"]


def test_a_failure_rolls_the_effect_back(bench: Bench):
    def body(context):
        leave(context)
        raise ValueError("no such order")

    ran = bench.run(body)
    assert ran.effects == []
    assert (ran.state, ran.attempt.outcome) == ("retrying", "failed")
    assert ran.attempt.error_class == "builtins.ValueError"
    assert ran.attempt.error_message == "no such order"


def test_a_result_that_cannot_be_stored_rolls_the_effect_back(bench: Bench):
    ran = bench.run(lambda context: leave(context) or object())
    assert ran.effects == []
    assert ran.attempt.error_class == "jobqueue.exceptions.ResultNotSerializable"


# --- broken transactions ----------------------------------------


def test_set_rollback_is_a_failure_not_a_silent_success(bench: Bench):
    def body(context):
        leave(context)
        transaction.set_rollback(True)

    ran = bench.run(body)
    assert ran.effects == []
    assert (ran.state, ran.attempt.outcome) == ("retrying", "failed")


def test_set_rollback_without_a_statement_is_a_failure(bench: Bench):
    ran = bench.run(lambda context: transaction.set_rollback(True))
    assert (ran.state, ran.attempt.outcome) == ("retrying", "failed")


def test_an_integrity_error_swallowed_by_the_job_is_what_is_recorded(bench: Bench):
    def body(context):
        leave(context)
        try:
            break_constraint()
        except IntegrityError:
            pass
        return "all is well"

    ran = bench.run(body)
    assert ran.effects == []
    assert ran.state == "retrying"
    assert "IntegrityError" in ran.attempt.traceback
    assert ran.attempt.error_class == "django.db.utils.IntegrityError"


@pytest.mark.postgres_only("SQLite goes on after an error of a statement")
def test_a_database_error_swallowed_on_a_plain_cursor_is_what_is_recorded(bench: Bench):
    def body(context):
        leave(context)
        with connection.cursor() as cursor:
            try:
                cursor.execute("SELECT 1 / 0")
            except Exception:
                pass
            try:
                cursor.execute("SELECT 'hidden behind the first'")
            except Exception:
                pass

    ran = bench.run(body)
    assert ran.effects == []
    assert ran.attempt.error_class == "django.db.utils.DataError"
    assert "division by zero" in ran.attempt.error_message


def test_an_error_inside_a_savepoint_may_be_caught(bench: Bench):
    def body(context):
        leave(context, "before")
        try:
            with transaction.atomic():
                break_constraint()
        except IntegrityError:
            leave(context, "after")

    ran = bench.run(body)
    assert ran.state == "succeeded"
    assert ran.effects == ["before", "after"]


def test_a_block_entered_by_hand_and_left_open_is_a_failure(bench: Bench):
    def body(context):
        transaction.atomic().__enter__()
        leave(context)

    ran = bench.run(body)
    assert ran.effects == []
    assert ran.attempt.error_class == "jobqueue.exceptions.TransactionLeftOpen"
    assert bench.run(leave).effects == ["done"]


def test_a_block_left_open_by_a_job_that_raises_does_not_hide_its_error(bench: Bench):
    def body(context):
        transaction.atomic().__enter__()
        leave(context)
        raise ValueError("the job's own")

    ran = bench.run(body)
    assert ran.effects == []
    assert ran.attempt.error_message == "the job's own"
    assert bench.run(leave).effects == ["done"]


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_block_left_open_on_another_alias_is_a_failure(bench: Bench):
    def body(context):
        leave(context)
        transaction.atomic(using="other").__enter__()

    ran = bench.run(body)
    assert ran.effects == []
    assert ran.attempt.error_class == "jobqueue.exceptions.TransactionLeftOpen"
    assert not connections["other"].in_atomic_block


def test_a_deferred_constraint_violated_at_commit_is_a_failure(bench: Bench, deferred_parent):
    def body(context):
        leave(context)
        run_sql(connection, "INSERT INTO deferred_child (parent_id) VALUES (999)")

    ran = bench.run(body)
    assert ran.effects == []
    assert (ran.state, ran.attempt.outcome) == ("retrying", "failed")
    assert ran.attempt.error_class == "django.db.utils.IntegrityError"
    assert bench.run(leave).effects == ["done"]


def test_a_durable_block_inside_an_atomic_task_says_why_it_cannot_be(bench: Bench):
    def body(context):
        with transaction.atomic(durable=True):
            leave(context)

    ran = bench.run(body)
    assert ran.effects == []
    assert "durable" in ran.attempt.error_message


# --- hooks ----------------------------------------


def test_hooks_run_after_the_commit_of_effect_and_finish(bench: Bench):
    seen = []

    def body(context):
        leave(context)
        transaction.on_commit(
            lambda: seen.append(run_sql(bench.storage.connection, "SELECT state FROM jobqueue_job"))
        )

    bench.run(body)
    assert [[tuple(row) for row in rows] for rows in seen] == [[("succeeded",)]]


def test_hooks_of_a_failed_job_never_run(bench: Bench):
    called = []

    def body(context):
        leave(context)
        transaction.on_commit(lambda: called.append(1))
        raise ValueError

    bench.run(body)
    assert called == []


@pytest.mark.parametrize("error", [ValueError("in the hook"), SystemExit(1), KeyboardInterrupt()])
def test_a_job_whose_hook_raises_has_succeeded(bench: Bench, error: BaseException):
    def hook():
        raise error

    def body(context):
        leave(context)
        transaction.on_commit(hook)

    ran = bench.run(body)
    assert ran.effects == ["done"]
    assert (ran.state, ran.attempt.outcome) == ("succeeded", "succeeded")
    assert ran.ended.is_success


def test_a_hook_with_the_error_of_a_broken_constraint_is_not_taken_for_the_commit(bench: Bench):
    def body(context):
        leave(context)
        transaction.on_commit(break_constraint)

    ran = bench.run(body)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
    assert bench.run(leave).effects == ["done"]


def test_a_job_that_loses_its_connection_in_a_hook_has_succeeded(bench: Bench):
    def body(context):
        leave(context)
        transaction.on_commit(lambda: connection.close())
        transaction.on_commit(lambda: run_sql(connection, "SELECT no_such_column"))

    ran = bench.run(body)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
    assert bench.run(leave).effects == ["done"]


@pytest.fixture
def deferred_parent(transactional_db):
    """Two tables whose foreign key is looked at only by COMMIT."""
    run_sql(connection, "CREATE TABLE deferred_parent (id integer PRIMARY KEY)")
    run_sql(
        connection,
        "CREATE TABLE deferred_child (parent_id integer REFERENCES deferred_parent (id) "
        "DEFERRABLE INITIALLY DEFERRED)",
    )
    yield
    connections["default"].close()
    run_sql(connection, "DROP TABLE deferred_child")
    run_sql(connection, "DROP TABLE deferred_parent")
