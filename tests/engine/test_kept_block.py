"""What a job has done to its connection reaches no other through a block that is kept."""

import time
from contextlib import suppress

import pytest
from django.db import connection, connections, transaction
from django.db.utils import OperationalError

from jobqueue.engine import atomic_run
from jobqueue.engine.job_block import kept_connection
from jobqueue.events import subscribe
from tests.app.models import Effect
from tests.engine.bench import Bench, Ran, effects, leave
from tests.engine.cutting import session_pid, terminate
from tests.engine.test_untouched import quiet
from tests.storage.making import run_sql

__all__ = ["quiet"]
pytestmark = [
    pytest.mark.postgres_only("on SQLite no block is kept"),
    pytest.mark.usefixtures("quiet"),
]


def fail(context):
    leave(context, "never")
    raise ValueError("on purpose")


def test_a_session_that_commits_each_statement_is_not_handed_on(bench: Bench):
    def body(context):
        connection.connection.autocommit = True  # VACUUM refuses a transaction
        connection.connection.execute("VACUUM jobqueue_step")

    first, second = bench.claim_one(body), bench.claim_one(fail)
    ended = [bench.execute(first, has_next=True), bench.execute(second)]
    bench.flush(*ended)
    assert (Ran(first.id).state, effects(second.id)) == ("succeeded", [])


def test_a_session_past_its_age_is_closed_though_a_next_job_waits(bench: Bench):
    def body(context):
        leave(context)
        connection.close_at = time.monotonic()  # as a pool's, or CONN_MAX_AGE some time ago

    bench.execute(bench.claim_one(body), has_next=True)
    assert (kept_connection(), connection.connection) == (None, None)


def test_a_session_under_which_errors_occurred_is_looked_at(bench: Bench):
    def body(context):
        with suppress(OperationalError), transaction.atomic():
            run_sql(connection, "SET LOCAL statement_timeout = '1ms'")
            run_sql(connection, "SELECT 1 FROM pg_sleep(60)")
        leave(context)

    bench.execute(bench.claim_one(body), has_next=True)
    assert (kept_connection(), connection.errors_occurred) == (None, False)


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_session_of_another_database_that_ended_costs_no_attempt(bench: Bench, admin):
    def ask(context):
        run_sql(connections["other"], "SELECT 1")

    first, second = bench.claim_one(ask), bench.claim_one(ask)
    bench.execute(first, has_next=True)
    terminate(admin, session_pid(connections["other"]))
    bench.flush(bench.execute(second))
    assert Ran(second.id).state == "succeeded"


def test_what_a_subscriber_writes_is_no_part_of_the_next_job(bench: Bench, monkeypatch):
    def write(event):
        if event.name == "job.long_transaction":
            Effect.objects.create(job_id=str(event.facts["job"]), label="long")

    monkeypatch.setattr(atomic_run, "LONG_TRANSACTION_SECONDS", 0.0)
    claims = [bench.claim_one(leave), bench.claim_one(fail)]
    stop = subscribe(write)
    try:
        bench.execute(claims[0], has_next=True)
        bench.execute(claims[1])
    finally:
        stop()
    assert [effects(claim.id) for claim in claims] == [["done", "long"], ["long"]]


def test_an_execute_wrapper_that_a_job_leaves_takes_nobody_elses_place(bench: Bench):
    def wrapper(execute, *args):
        return execute(*args)

    claim = bench.claim_one(lambda context: connection.execute_wrappers.append(wrapper))
    bench.execute(claim)
    left = connection.execute_wrappers.copy()
    connection.execute_wrappers.clear()
    assert left == [wrapper]


def test_the_log_of_queries_does_not_grow_in_one_block(bench: Bench, settings):
    settings.DEBUG = True
    bench.execute(bench.claim_one(leave), has_next=True)
    assert kept_connection() is not None
    assert not connection.queries_log
