"""The guard: a run that no longer owns its job writes nothing, neither effects nor any end."""

import psycopg
import pytest
from django.db import connection

from jobqueue.engine.outcomes import Ended
from jobqueue.exceptions import Cancel, GiveUp, LeaseLost, Retry, Snooze
from jobqueue.ids import new_identity
from jobqueue.models import Attempt, Job
from jobqueue.storage import storage_for
from jobqueue.storage.statements import statement
from tests.conftest import url_in_use
from tests.engine.bench import Bench, effects, leave
from tests.engine.tasks import async_job, atomic_job, plain_job
from tests.storage.making import everything, run_sql

STALE = {
    "fence": lambda claim: claim._replace(fence=claim.fence - 1),
    "worker": lambda claim: claim._replace(worker=new_identity()),
}


def is_lease_lost(ended: Ended) -> bool:
    return not ended.is_success and ended.failure is None


# --- an atomic task ----------------------------------------


@pytest.mark.parametrize("stale", STALE.values(), ids=STALE.keys())
def test_a_stale_claim_commits_no_effect(bench: Bench, stale):
    claim = stale(bench.claim_one(leave))
    before = everything()
    ended = bench.execute(claim)
    assert is_lease_lost(ended)
    bench.flush(ended)
    assert effects(claim.id) == []
    assert everything() == before


@pytest.mark.postgres_only("SQLite has one writer: nobody takes over a job that has written")
def test_a_run_whose_job_was_taken_over_commits_no_effect(bench: Bench):
    taken = []

    def body(context):
        leave(context, "zombie")
        taken.append(bench.take_away(claim))

    claim = bench.claim_one(body)
    ended = bench.execute(claim)
    assert is_lease_lost(ended)
    assert effects(claim.id) == []
    assert Job.objects.get(pk=claim.id).worker == taken[0].worker


def test_a_run_taken_over_before_its_first_statement_commits_no_effect(bench: Bench):
    claim = bench.claim_one(lambda context: leave(context, "zombie"))
    taken = bench.take_away(claim)
    ended = bench.execute(claim)
    assert is_lease_lost(ended)
    bench.flush(ended)
    assert effects(claim.id) == []
    assert bench.storage.running_of([taken.worker])[0].fence == taken.fence


@pytest.mark.parametrize("state", ["succeeded", "dead", "ready"])
def test_a_job_in_another_state_is_not_finished_again(bench: Bench, state: str):
    claim = bench.claim_one(lambda context: leave(context, "late"))
    if state == "succeeded":
        bench.storage.finish_one(claim, "1", 0.0)
    elif state == "dead":
        bench.flush(Ended(claim, 0.0, 0.0, failure=_failure(bench, claim, GiveUp())))
    else:
        bench.reap(claim)
    before = everything()
    ended = bench.execute(claim)
    bench.flush(ended)
    assert is_lease_lost(ended)
    assert effects(claim.id) == []
    assert everything() == before


def test_a_swallowed_lease_lost_does_not_let_the_zombie_finish(bench: Bench):
    def body(context):
        leave(context)
        try:
            with context.atomic():
                pass
        except LeaseLost:
            pass
        return "nothing happened"

    claim = STALE["fence"](bench.claim_one(body))
    ended = bench.execute(claim)
    assert is_lease_lost(ended)
    assert effects(claim.id) == []


# --- other ways out ----------------------------------------


def _failure(bench: Bench, claim, error: BaseException):
    from jobqueue.engine.outcomes import decide_failure

    return decide_failure(claim, error, None, bench.environment.options)


@pytest.mark.parametrize(
    "error",
    [ValueError(), Snooze(1), Retry(after=1), GiveUp(), Cancel()],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("stale", STALE.values(), ids=STALE.keys())
def test_a_zombie_cannot_lead_somebody_elses_run_anywhere(bench: Bench, stale, error):
    claim = stale(bench.claim_one(leave))
    before = everything()
    bench.flush(Ended(claim, 0.0, 0.0, failure=_failure(bench, claim, error)))
    assert everything() == before


@pytest.mark.parametrize("stale", STALE.values(), ids=STALE.keys())
def test_a_zombie_cannot_finish_in_a_batch(bench: Bench, stale):
    claim = stale(bench.claim_one(leave))
    before = everything()
    bench.flush(Ended(claim, 0.0, 0.0, result="1"))
    assert everything() == before


@pytest.mark.parametrize("stale", STALE.values(), ids=STALE.keys())
def test_a_finish_that_matches_nothing_is_an_exception(bench: Bench, stale):
    claim = stale(bench.claim_one(leave))
    with pytest.raises(LeaseLost):
        bench.storage.finish_one(claim, "1", 0.0)


def test_a_job_that_has_succeeded_once_cannot_succeed_again(bench: Bench):
    """Not even if a broken operator's statement made it run again."""
    claim = bench.claim_one(leave)
    bench.execute(claim)
    run_sql(
        connection,
        "UPDATE jobqueue_job SET state = 'ready', finished_at = NULL, result = NULL",
    )
    (again,) = bench.claim(atomic_job)
    assert again.fence == claim.fence + 1
    ended = bench.execute(again)
    assert is_lease_lost(ended)
    assert effects(claim.id) == ["done"]
    assert Attempt.objects.filter(job_id=claim.id, outcome="succeeded").count() == 1


# --- the guard fails on the server ----------------------------------------


def finish_in(session: psycopg.Connection, claim, name: str = "finish_one"):
    """Send the finishing statement of a claim on a plain session."""
    return session.execute(
        statement("postgresql", name, limit_idle=""),
        {
            "id": claim.id,
            "fence": claim.fence,
            "worker": claim.worker,
            "result": "1",
            "started_ago": 0.0,
            "idle_timeout": "5s",
        },
    )


def pipeline_effect_finish_and_commit(claim) -> None:
    """Send all three before the first answer is read."""
    with psycopg.connect(url_in_use("default")) as session, session.pipeline():
        session.execute(
            "INSERT INTO app_effect (job_id, label, created) VALUES (%s, 'pipelined', now())",
            [str(claim.id)],
        )
        finish_in(session, claim)
        session.commit()


@pytest.mark.postgres_only("SQLite has no pipeline")
@pytest.mark.parametrize("stale", STALE.values(), ids=STALE.keys())
def test_a_commit_queued_behind_a_stale_finish_can_only_roll_back(bench: Bench, stale):
    """Nobody has looked at the finish's answer when COMMIT is already on its way."""
    claim = stale(bench.claim_one(leave, plain_job))
    with pytest.raises(psycopg.DatabaseError, match="jobqueue_lease_lost"):
        pipeline_effect_finish_and_commit(claim)
    assert effects(claim.id) == []
    assert Job.objects.get(pk=claim.id).state == "running"


@pytest.mark.postgres_only("SQLite has no pipeline")
def test_a_commit_queued_behind_the_owners_finish_commits_both(bench: Bench):
    """The same pipeline with the right fence: it is the guard that makes the difference."""
    claim = bench.claim_one(leave, plain_job)
    pipeline_effect_finish_and_commit(claim)
    assert effects(claim.id) == ["pipelined"]
    assert Job.objects.get(pk=claim.id).state == "succeeded"


@pytest.mark.postgres_only("SQLite's guard is the row count")
def test_the_hold_of_a_stale_claim_fails_on_the_server(bench: Bench):
    claim = STALE["fence"](bench.claim_one(leave))
    with psycopg.connect(url_in_use("default")) as session:
        with pytest.raises(psycopg.DatabaseError, match="jobqueue_lease_lost"):
            session.execute(
                statement("postgresql", "hold_job"),
                {
                    "id": claim.id,
                    "fence": claim.fence,
                    "worker": claim.worker,
                    "idle_timeout": "5s",
                },
            )


@pytest.mark.postgres_only("SQLite has no sessions that a server could end")
def test_after_the_finish_the_server_ends_a_session_that_does_not_commit(bench: Bench):
    """A process frozen between finish and COMMIT keeps the row for seconds, not for ever."""
    claim = bench.claim_one(leave)
    storage = storage_for(connection, bench.environment.options)
    connection.set_autocommit(False)
    storage.finish_one(claim, "1", 0.0)
    inside = run_sql(connection, "SHOW idle_in_transaction_session_timeout")
    connection.rollback()
    connection.set_autocommit(True)
    outside = run_sql(connection, "SHOW idle_in_transaction_session_timeout")
    assert inside == [("5s",)]
    assert outside == [("0",)]


# --- LeaseLost that is none ----------------------------------------


@pytest.mark.parametrize("task", [atomic_job, plain_job, async_job], ids=lambda t: t.name)
def test_a_job_that_raises_lease_lost_of_itself_has_failed(bench: Bench, task):
    """Taken at its word it would be given back, uncharged, and run again for ever."""

    def body(context):
        leave(context)
        raise LeaseLost("of my own")

    async def body_async(context):
        raise LeaseLost("of my own")

    ran = bench.run(body_async if task is async_job else body, task)
    assert (ran.state, ran.job.failures, ran.attempt.outcome) == ("retrying", 1, "failed")
    assert ran.attempt.error_message == "of my own"


def test_a_job_that_raises_the_lease_lost_of_another_has_failed(bench: Bench):
    """Two jobs may talk to each other; each loses only its own."""
    other = bench.claim_one(leave, plain_job)
    bench.take_away(other)

    def body(context):
        bench.storage.record_step(other, "charge", "1")

    ran = bench.run(body, plain_job)
    assert (ran.state, ran.job.failures) == ("retrying", 1)
