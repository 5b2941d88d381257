"""Nothing of one job, nor of whoever starts it, reaches the next."""

import logging
from contextvars import ContextVar
from datetime import UTC

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone, translation

from jobqueue import compat
from tests.engine.bench import Bench, Ran, leave
from tests.engine.cutting import session_pid, terminate
from tests.engine.tasks import async_job, atomic_job, plain_job
from tests.storage.making import run_sql

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


@pytest.fixture(autouse=True)
def unheard(monkeypatch):
    """Nobody listens to signals: whatever cleans up is not done for a receiver's sake."""
    monkeypatch.setattr(compat, "_printed", {})
    logger = logging.getLogger(compat.FRAMEWORK_LOGGER)
    monkeypatch.setattr(logger, "disabled", True)


TASKS = pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "not atomic"])


# --- context ----------------------------------------


@TASKS
def test_context_variables_of_one_job_are_not_seen_by_the_next(bench: Bench, task):
    def body(context):
        before = tenant.get()
        tenant.set("ACME")
        return before

    assert bench.run(body, task).job.result == "nobody"
    assert bench.run(body, task).job.result == "nobody"
    assert tenant.get() == "nobody"


@TASKS
def test_context_variables_of_the_worker_are_not_seen_by_a_job(bench: Bench, task):
    token = tenant.set("the worker's")
    try:
        assert bench.run(lambda context: tenant.get(), task).job.result == "nobody"
    finally:
        tenant.reset(token)


@TASKS
def test_language_and_time_zone_of_one_job_are_not_seen_by_the_next(bench: Bench, task):
    def body(context):
        before = translation.get_language(), timezone.get_current_timezone_name()
        translation.activate("de")
        timezone.activate("Asia/Tokyo")
        return before

    assert bench.run(body, task).job.result == ["en-us", "UTC"]
    assert bench.run(body, task).job.result == ["en-us", "UTC"]
    assert translation.get_language() == "en-us"
    assert timezone.get_current_timezone() == UTC or timezone.get_current_timezone_name() == "UTC"


# --- arguments ----------------------------------------


@TASKS
def test_an_attempt_that_changes_its_arguments_changes_them_for_nobody_else(bench: Bench, task):
    seen = []

    def body(context, items, options=None):
        seen.append((list(items), dict(options)))
        items.append("changed")
        options["changed"] = True
        if context.attempt == 1:
            raise ValueError

    ran = bench.run(body, task, [1], options={"a": 1})
    bench.again(ran, task)
    assert seen == [([1], {"a": 1})] * 2


@pytest.mark.postgres_only("SQLite has no sessions that somebody could end")
def test_a_rerun_of_an_attempt_sees_its_arguments_as_they_were(bench: Bench, admin):
    seen = []

    def body(context, items):
        seen.append(list(items))
        items.append("changed")
        leave(context)
        if len(seen) == 1:
            terminate(admin, session_pid())
            leave(context)

    bench.run(body, atomic_job, [1])
    assert seen == [[1], [1]]


def test_arguments_arrive_as_json_made_them(bench: Bench):
    def body(context, *args, **kwargs):
        return [list(args), kwargs]

    ran = bench.run(body, plain_job, (1, 2), {1: "a"}, None, task="t", job="j", queue="q")
    assert ran.job.result == [[[1, 2], {"1": "a"}, None], {"task": "t", "job": "j", "queue": "q"}]


# --- connections ----------------------------------------


def leave_block_open(context):
    transaction.atomic().__enter__()
    leave(context, "lost")


def begin_by_hand(context):
    run_sql(connection, "BEGIN")
    leave(context, "lost")


def turn_autocommit_off(context):
    transaction.set_autocommit(False)
    leave(context, "lost")


OPEN = [leave_block_open, begin_by_hand, turn_autocommit_off]


@pytest.mark.parametrize("body", OPEN, ids=lambda f: f.__name__)
@TASKS
def test_a_transaction_left_open_fails_its_job_and_no_other(bench: Bench, body, task):
    ran = bench.run(body, plain_job)
    assert (ran.state, ran.effects) == ("retrying", [])
    assert ran.attempt.error_class == "jobqueue.exceptions.TransactionLeftOpen"
    after = bench.run(leave, task)
    assert (after.state, after.effects) == ("succeeded", ["done"])


@pytest.mark.parametrize("body", OPEN, ids=lambda f: f.__name__)
@TASKS
def test_a_transaction_left_open_by_a_job_that_raises_is_gone_too(bench: Bench, body, task):
    def raising(context):
        body(context)
        raise ValueError("the job's own")

    ran = bench.run(raising, plain_job)
    assert (ran.attempt.error_message, ran.effects) == ("the job's own", [])
    after = bench.run(leave, task)
    assert (after.state, after.effects) == ("succeeded", ["done"])


@TASKS
def test_autocommit_left_off_without_a_transaction_is_turned_on_again(bench: Bench, task):
    def body(context):
        transaction.set_autocommit(False)
        leave(context)
        transaction.commit()

    ran = bench.run(body, plain_job)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
    after = bench.run(leave, task)
    assert (after.state, after.effects) == ("succeeded", ["done"])


@TASKS
def test_a_connection_closed_by_a_job_is_opened_again(bench: Bench, task):
    bench.run(lambda context: connection.close(), plain_job)
    assert bench.run(leave, task).effects == ["done"]


@TASKS
@pytest.mark.postgres_only("SQLite has no sessions that somebody could end")
def test_a_session_ended_while_idle_costs_no_attempt(bench: Bench, admin, task):
    bench.run(leave, task)
    claim = bench.claim_one(leave, task)
    terminate(admin, session_pid())
    bench.flush(bench.execute(claim, task))
    ran = Ran(claim.id)
    assert (ran.state, ran.effects, ran.job.failures) == ("succeeded", ["done"], 0)


@pytest.mark.postgres_only("SQLite has no sessions that somebody could end")
def test_a_session_ended_in_a_job_that_is_not_atomic_fails_that_attempt_only(bench: Bench, admin):
    def body(context):
        terminate(admin, session_pid())
        leave(context)

    ran = bench.run(body, plain_job)
    assert (ran.state, ran.job.failures) == ("retrying", 1)
    assert bench.run(leave, plain_job).effects == ["done"]


def test_the_log_of_queries_does_not_grow_from_job_to_job(bench: Bench, settings):
    settings.DEBUG = True
    connection.force_debug_cursor = True
    lengths = []

    def body(context):
        leave(context)
        lengths.append(len(connection.queries))

    try:
        for _ in range(4):
            bench.run(body, plain_job)
    finally:
        connection.force_debug_cursor = False
    assert lengths[1:] == [lengths[1]] * 3


def test_a_job_leaves_no_connection_in_a_transaction(bench: Bench):
    for body in OPEN:
        bench.run(body, plain_job)
        assert not connections["default"].in_atomic_block


def test_an_async_job_starts_in_a_context_of_its_own(bench: Bench):
    """The slots start each in a fresh one; what it sets is not seen by its caller."""

    async def body(context):
        tenant.set("ACME")

    bench.run(body, async_job)
    assert tenant.get() == "nobody"
