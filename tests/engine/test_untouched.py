"""A job without a statement of its own has nothing to bind: its finish goes with the batch."""

import pytest
from django.db import connection, transaction

from jobqueue.engine import execution
from jobqueue.events import subscribe
from tests.app.models import Effect
from tests.engine.bench import Bench, Ran, effects, leave
from tests.engine.tasks import atomic_job

POSTGRES = pytest.mark.postgres_only("on SQLite the write lock is taken when the job starts")


@pytest.fixture
def events():
    """The events of the test, as they happen."""
    seen = []
    stop = subscribe(seen.append)
    yield seen
    stop()


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


# --- long transactions ----------------------------------------


def test_an_atomic_job_that_took_long_is_named_with_the_way_out(bench: Bench, monkeypatch, events):
    monkeypatch.setattr(execution, "LONG_TRANSACTION_SECONDS", 0.0)
    ran = bench.run(leave)
    (event,) = [e for e in events if e.name == "job.long_transaction"]
    assert event.facts["job"] == ran.id
    assert event.facts["task"] == atomic_job.module_path
    assert "context.commit" in event.facts["way_out"]


def test_a_short_job_is_not_named(bench: Bench, events):
    ran = bench.run(leave)
    assert effects(ran.id) == ["done"]
    assert "job.long_transaction" not in [e.name for e in events]
