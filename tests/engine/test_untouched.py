"""A job without a statement of its own has nothing to bind: its finish goes with the batch."""

from contextlib import suppress

import pytest
from django.db import DatabaseError, connection, connections, transaction

from jobqueue import compat
from jobqueue.compat import task_started
from jobqueue.engine import atomic_run
from jobqueue.engine.job_block import kept_connection, leave_kept_block
from jobqueue.storage.connections import discard
from tests.app.models import Effect
from tests.engine.bench import Bench, Ran, effects, leave
from tests.engine.cutting import session_pid, terminate
from tests.engine.tasks import atomic_job, plain_job
from tests.storage.making import run_sql

POSTGRES = pytest.mark.postgres_only("on SQLite the write lock is taken when the job starts")


@POSTGRES
def test_a_job_that_ran_no_statement_waits_for_the_batch(bench: Bench):
    claim = bench.claim_one(lambda context: 7)
    ended = bench.execute(claim)
    assert (ended.committed, ended.result) == (False, "7")
    assert Ran(claim.id).state == "running"
    bench.flush(ended)
    assert (Ran(claim.id).state, Ran(claim.id).job.result) == ("succeeded", 7)


@POSTGRES
@pytest.mark.parametrize(
    "touch",
    [
        lambda context: Effect.objects.exists() and None,
        lambda context: leave(context),
        lambda context: transaction.on_commit(lambda: None),
        lambda context: connection.connection.execute("SELECT 1") and None,
    ],
    ids=["read", "write", "hook", "statement past Django"],
)
def test_a_job_that_touched_the_database_finishes_in_its_own_transaction(bench: Bench, touch):
    claim = bench.claim_one(touch)
    ended = bench.execute(claim)
    assert ended.committed
    assert Ran(claim.id).state == "succeeded"


@POSTGRES
def test_a_hook_without_a_statement_still_runs_after_the_finish(bench: Bench):
    seen = []
    claim = bench.claim_one(
        lambda context: transaction.on_commit(lambda: seen.append(Ran(claim.id).state))
    )
    bench.execute(claim)
    assert seen == ["succeeded"]


@POSTGRES
def test_a_job_rolled_back_by_hand_is_not_taken_for_untouched(bench: Bench):
    ran = bench.run(lambda context: transaction.set_rollback(True))
    assert ran.state == "retrying"


def test_a_job_without_effects_succeeds_all_the_same(bench: Bench):
    ran = bench.run(lambda context: "done")
    assert (ran.state, ran.job.result, ran.attempt.outcome) == ("succeeded", "done", "succeeded")


# --- a block that the next job uses again ----------------------------------------

BEFORE = pytest.mark.parametrize(
    "before", [lambda context: None, leave], ids=["untouched", "committed"]
)
"""What the job did that has left its block to the next."""


@pytest.fixture
def quiet(monkeypatch):
    """Nobody hears signals, so nothing but jobs runs in the thread."""
    monkeypatch.setattr(compat, "_would_print", lambda level: False)
    yield
    leave_kept_block()
    assert not connection.in_atomic_block


@POSTGRES
def test_each_job_in_one_block_has_its_own_transaction(bench: Bench, quiet):
    def fail(context):
        leave(context, "never")
        raise ValueError("on purpose")

    def swallow(context):
        with suppress(DatabaseError):
            run_sql(connection, "SELECT 1 / 0")

    bodies = [leave, lambda context: 1, fail, lambda context: 2, swallow, lambda context: 3, leave]
    claims = [bench.claim_one(body) for body in bodies]
    seen, ended = [], []
    for claim in claims:
        seen.append(kept_connection())
        ended.append(bench.execute(claim, has_next=claim is not claims[-1]))
    bench.flush(*ended)
    home = connections["default"]
    assert seen == [None, home, home, None, home, None, home]
    assert [Ran(claim.id).state for claim in claims] == [
        *("succeeded", "succeeded", "retrying", "succeeded", "retrying", "succeeded", "succeeded")
    ]
    assert [effects(claim.id) for claim in claims] == [["done"], [], [], [], [], [], ["done"]]
    assert kept_connection() is None


@POSTGRES
@BEFORE
def test_a_block_is_left_before_a_job_that_is_not_atomic(bench: Bench, quiet, before):
    def body(context):
        assert not connection.in_atomic_block
        leave(context)

    claim, first = bench.claim_one(body, plain_job), bench.claim_one(before)
    bench.execute(first, has_next=True)
    bench.flush(bench.execute(claim, plain_job, has_next=True))
    assert kept_connection() is None


@POSTGRES
@BEFORE
def test_a_block_is_left_before_receivers_run(bench: Bench, quiet, before):
    seen = []

    def receiver(**kwargs):
        seen.append(connection.in_atomic_block)

    claim, first = bench.claim_one(leave), bench.claim_one(before)
    bench.execute(first, has_next=True)
    task_started.connect(receiver)
    try:
        bench.flush(bench.execute(claim, has_next=True))
    finally:
        task_started.disconnect(receiver)
    assert seen == [False]


@POSTGRES
@BEFORE
def test_a_session_that_ended_under_a_kept_block_costs_no_attempt(
    bench: Bench, admin, quiet, before
):
    claim, first = bench.claim_one(leave), bench.claim_one(before)
    bench.execute(first, has_next=True)
    terminate(admin, session_pid(connection))
    bench.flush(bench.execute(claim))
    ran = Ran(claim.id)
    assert (ran.state, ran.effects, ran.job.failures) == ("succeeded", ["done"], 0)


@POSTGRES
@BEFORE
def test_a_block_that_went_with_its_connection_is_no_proof_of_anything(bench: Bench, quiet, before):
    def fail(context):
        leave(context, "never")
        raise ValueError("on purpose")

    claim, first = bench.claim_one(fail), bench.claim_one(before)
    bench.execute(first, has_next=True)
    discard(connections["default"])
    bench.flush(bench.execute(claim))
    assert (Ran(claim.id).state, effects(claim.id)) == ("retrying", [])


@POSTGRES
def test_hooks_run_outside_of_any_block_though_a_next_job_waits(bench: Bench, quiet):
    seen = []

    def body(context):
        leave(context)
        transaction.on_commit(lambda: seen.append(connection.in_atomic_block))

    bench.execute(bench.claim_one(body), has_next=True)
    assert (seen, kept_connection()) == ([False], None)


@POSTGRES
def test_no_block_is_kept_for_nobody(bench: Bench):
    bench.flush(bench.execute(bench.claim_one(lambda context: None)))
    assert kept_connection() is None
    assert not connection.in_atomic_block


# --- long transactions ----------------------------------------


def test_an_atomic_job_that_took_long_is_named_with_the_way_out(bench: Bench, monkeypatch, events):
    monkeypatch.setattr(atomic_run, "LONG_TRANSACTION_SECONDS", 0.0)
    ran = bench.run(leave)
    (event,) = [e for e in events if e.name == "job.long_transaction"]
    assert event.facts["job"] == ran.id
    assert event.facts["task"] == atomic_job.module_path
    assert "context.commit" in event.facts["way_out"]


def test_a_short_job_is_not_named(bench: Bench, events):
    ran = bench.run(leave)
    assert effects(ran.id) == ["done"]
    assert "job.long_transaction" not in [e.name for e in events]
