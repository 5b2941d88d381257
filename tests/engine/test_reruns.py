"""Serialization failures at finish or COMMIT: the job runs again at once and is charged nothing."""

import pytest
from django.db import connection, connections

from jobqueue.events import subscribe
from jobqueue.models import Job
from jobqueue.storage.connections import open_connection
from tests.engine import faults
from tests.engine.bench import Bench, Ran, effects, leave
from tests.storage.making import run_sql

pytestmark = pytest.mark.postgres_only("SQLite has one writer at a time: nothing to serialize")

CODES = pytest.mark.parametrize("code", ["40001", "40P01"], ids=["serialization", "deadlock"])


def conflict(wrapper, code: str) -> None:
    """Let the server itself raise the error."""
    run_sql(wrapper, f"DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '{code}'; END $$")


def conflicting(times: int, code: str):
    """A hook that makes the first finishes fail on the server."""
    calls = []

    def hook(storage, proceed):
        calls.append(1)
        if len(calls) <= times:
            conflict(storage.connection, code)
        return proceed()

    return faults.at("finish_one", hook)


@pytest.fixture
def conflicts_at_commit(transactional_db):
    """Makes COMMIT of an effect fail as often as told, counted by what never rolls back."""
    run_sql(connection, "CREATE SEQUENCE commits")

    def fail(times: int, code: str) -> None:
        run_sql(
            connection,
            "CREATE FUNCTION fail_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF nextval('commits') <= {times} THEN "
            f"RAISE EXCEPTION 'again' USING ERRCODE = '{code}'; END IF; RETURN NULL; END $$",
        )
        run_sql(
            connection,
            "CREATE CONSTRAINT TRIGGER fail_at_commit AFTER INSERT ON app_effect "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail_at_commit()",
        )

    yield fail
    connections["default"].close()
    run_sql(connection, "DROP TRIGGER fail_at_commit ON app_effect")
    run_sql(connection, "DROP FUNCTION fail_at_commit()")
    run_sql(connection, "DROP SEQUENCE commits")


def counted():
    runs = []

    def body(context):
        runs.append(context.fence)
        leave(context)

    return body, runs


@CODES
@pytest.mark.parametrize("times", [1, 3])
def test_a_conflict_at_the_finish_runs_the_job_again_uncharged(bench: Bench, code, times):
    body, runs = counted()
    with conflicting(times, code):
        ran = bench.run(body)
    assert runs == [1] * (times + 1)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
    assert (ran.job.failures, ran.attempt.outcome) == (0, "succeeded")


@CODES
@pytest.mark.parametrize("times", [1, 3])
def test_a_conflict_at_commit_runs_the_job_again_uncharged(
    bench: Bench, conflicts_at_commit, code, times
):
    conflicts_at_commit(times, code)
    body, runs = counted()
    ran = bench.run(body)
    assert runs == [1] * (times + 1)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
    assert (ran.job.failures, ran.attempt.outcome) == (0, "succeeded")


@CODES
def test_a_fourth_conflict_in_a_row_is_a_failure(bench: Bench, code):
    body, runs = counted()
    with conflicting(4, code):
        ran = bench.run(body)
    assert len(runs) == 4
    assert (ran.state, ran.effects) == ("retrying", [])
    assert (ran.job.failures, ran.attempt.outcome) == (1, "failed")


def test_a_fourth_conflict_at_commit_is_a_failure(bench: Bench, conflicts_at_commit):
    conflicts_at_commit(4, "40001")
    body, runs = counted()
    ran = bench.run(body)
    assert len(runs) == 4
    assert (ran.state, ran.effects, ran.job.failures) == ("retrying", [], 1)


@CODES
def test_a_conflict_in_the_jobs_own_code_is_its_failure(bench: Bench, code):
    """Its author may have sent mail before it; running it again is for the retry to decide."""
    body, runs = counted()

    def conflict_first(context):
        body(context)
        conflict(connection, code)

    ran = bench.run(conflict_first)
    assert len(runs) == 1
    assert (ran.state, ran.effects, ran.job.failures) == ("retrying", [], 1)


def test_a_job_taken_over_under_repeatable_read_ends_as_lease_lost(bench: Bench):
    """There the finish does not see the new owner, only a conflict; the re-run does."""
    taken = []

    def body(context):
        run_sql(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        leave(context, "zombie")
        if not taken:
            taken.append(bench.take_away(claim))

    claim = bench.claim_one(body)
    ended = bench.execute(claim)
    assert not ended.is_success
    assert ended.failure is None
    assert effects(claim.id) == []
    assert Job.objects.get(pk=claim.id).worker == taken[0].worker


# --- SQLite: a transaction that cannot begin ----------------------------------------


@pytest.fixture
def writer(bench: Bench):
    """Takes and gives back the only write lock, for which a job's own transaction does not wait."""
    other = open_connection("default")
    run_sql(connection, "PRAGMA busy_timeout = 0")
    other.set_autocommit(False)
    yield other
    other.close()
    connection.close()


@pytest.mark.sqlite_only("PostgreSQL has more than one writer")
def test_a_job_that_finds_the_database_locked_begins_again_uncharged(bench: Bench, writer):
    def end_it(event):
        if event.name == "job.rerun":
            writer.rollback()

    body, runs = counted()
    claim = bench.claim_one(body)
    run_sql(writer, "BEGIN IMMEDIATE")
    stop = subscribe(end_it)
    try:
        bench.flush(bench.execute(claim))
    finally:
        stop()
    ran = Ran(claim.id)
    assert (ran.state, ran.effects, runs) == ("succeeded", ["done"], [1])
    assert (ran.job.failures, ran.job.attempts) == (0, 1)


@pytest.mark.sqlite_only("PostgreSQL has more than one writer")
def test_a_job_that_cannot_begin_for_long_is_put_off_uncharged(bench: Bench, writer):
    body, runs = counted()
    claim = bench.claim_one(body)
    run_sql(writer, "BEGIN IMMEDIATE")
    ended = bench.execute(claim)
    writer.rollback()
    bench.flush(ended)
    ran = Ran(claim.id)
    assert (ran.state, ran.job.failures, runs) == ("scheduled", 0, [])
    assert (ran.attempt.outcome, ran.attempt.charged) == ("snoozed", False)
    assert "locked" in ran.attempt.error_message
    bench.again(ran)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
