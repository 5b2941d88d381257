"""A connection lost in an atomic job: whether COMMIT succeeded is found out, never guessed."""

import threading
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection, connections

from jobqueue.engine.commit_fate import resolve_unknown_commit
from jobqueue.ids import session_name
from jobqueue.models import Job
from jobqueue.storage.statements import statement
from tests.conftest import url_in_use
from tests.engine import faults
from tests.engine.bench import Bench, Ran, effects, leave
from tests.engine.cutting import (
    commit_and_lose_the_answer,
    cut_line,
    is_there,
    session_pid,
    terminate,
)
from tests.engine.tasks import plain_job
from tests.storage.making import run_sql

pytestmark = pytest.mark.postgres_only("SQLite has no network between COMMIT and its answer")


def counted(body):
    """Return `body` and a list that grows with each of its runs."""
    runs = []

    def counting(context):
        runs.append(context.fence)
        return body(context)

    return counting, runs


# --- while the job runs ----------------------------------------


def test_a_session_ended_in_the_middle_runs_the_job_again_uncharged(bench: Bench, admin):
    def body(context):
        leave(context)
        if len(runs) == 1:
            terminate(admin, session_pid())
            leave(context)

    body, runs = counted(body)
    ran = bench.run(body)
    assert runs == [1, 1]
    assert ran.effects == ["done"]
    assert (ran.state, ran.job.failures) == ("succeeded", 0)
    assert ran.attempt.outcome == "succeeded"


def test_a_session_ended_between_two_jobs_costs_the_next_one_nothing(bench: Bench, admin):
    bench.run(leave)
    claim = bench.claim_one(leave)
    terminate(admin, session_pid())
    bench.flush(bench.execute(claim))
    ran = Ran(claim.id)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
    assert ran.attempt.outcome == "succeeded"


def test_a_job_that_loses_its_session_each_time_fails_once_in_the_end(bench: Bench, admin):
    def body(context):
        leave(context)
        terminate(admin, session_pid())
        leave(context)

    body, runs = counted(body)
    ran = bench.run(body)
    assert len(runs) == 4
    assert ran.effects == []
    assert (ran.state, ran.job.failures) == ("retrying", 1)
    assert ran.attempt.error_class == "django.db.utils.OperationalError"
    assert bench.run(leave).effects == ["done"]


def test_a_job_that_swallows_the_loss_of_its_session_does_not_succeed_without_effects(
    bench: Bench, admin
):
    def body(context):
        leave(context)
        if len(runs) == 1:
            terminate(admin, session_pid())
            try:
                leave(context, "lost")
            except Exception:
                pass

    body, runs = counted(body)
    ran = bench.run(body)
    assert runs == [1, 1]
    assert ran.effects == ["done"]
    assert ran.state == "succeeded"


# --- between finish and COMMIT ----------------------------------------


def after_finish(what):
    """A hook that does `what` to the job's session between the finish and Django's COMMIT."""

    def hook(storage, proceed):
        answer = proceed()
        what(storage.connection)
        return answer

    return faults.at("finish_one", faults.once(hook))


def test_a_commit_whose_answer_is_lost_has_happened(bench: Bench, admin):
    body, runs = counted(leave)
    with after_finish(lambda c: commit_and_lose_the_answer(admin, c.connection)):
        ran = bench.run(body)
    assert runs == [1]
    assert ran.effects == ["done"]
    assert ran.state == "succeeded"
    assert ran.ended.committed


def test_a_session_ended_before_its_commit_runs_the_job_again(bench: Bench, admin):
    body, runs = counted(leave)
    with after_finish(lambda c: terminate(admin, session_pid(c))):
        ran = bench.run(body)
    assert runs == [1, 1]
    assert ran.effects == ["done"]
    assert (ran.state, ran.job.failures, len(ran.attempts)) == ("succeeded", 0, 1)


def test_a_line_cut_before_commit_leaves_no_session_that_could_still_commit(bench: Bench, admin):
    pids = []

    def cut(wrapper):
        pids.append(session_pid(wrapper))
        cut_line(wrapper.connection)

    body, runs = counted(leave)
    with after_finish(cut):
        ran = bench.run(body)
    assert runs == [1, 1]
    assert not is_there(admin, pids[0])
    assert (ran.state, ran.effects) == ("succeeded", ["done"])


def test_a_job_reaped_while_its_commit_was_unknown_is_lost_to_this_run(bench: Bench, admin):
    def end_and_reap(wrapper):
        terminate(admin, session_pid(wrapper))
        bench.reap(claim)

    claim = bench.claim_one(leave)
    with after_finish(end_and_reap):
        ended = bench.execute(claim)
    assert not ended.is_success
    assert ended.failure is None
    bench.flush(ended)
    assert effects(claim.id) == []
    assert Job.objects.get(pk=claim.id).state == "ready"


def test_a_job_taken_over_while_its_commit_was_unknown_is_lost_to_this_run(bench: Bench, admin):
    taken = []

    def end_and_take_over(wrapper):
        terminate(admin, session_pid(wrapper))
        taken.append(bench.take_away(claim))

    claim = bench.claim_one(leave)
    with after_finish(end_and_take_over):
        ended = bench.execute(claim)
    assert not ended.is_success
    assert ended.failure is None
    assert effects(claim.id) == []
    assert Job.objects.get(pk=claim.id).worker == taken[0].worker


def test_a_worker_that_lost_its_lease_does_not_wait_for_the_answer(bench: Bench, admin):
    bench.environment.is_alive = lambda: False
    claim = bench.claim_one(leave)
    with after_finish(lambda c: terminate(admin, session_pid(c))):
        ended = bench.execute(claim)
    assert not ended.is_success
    assert ended.failure is None


def test_the_next_job_has_a_healthy_connection(bench: Bench):
    with after_finish(lambda c: cut_line(c.connection)):
        bench.run(leave)
    assert bench.run(leave).effects == ["done"]


# --- what the old session may still do ----------------------------------------


@pytest.fixture
def slow_commit(transactional_db, admin):
    """Makes COMMIT of an effect wait on the server until the test lets it go on."""
    admin.execute("SELECT pg_advisory_lock(4711)")
    run_sql(
        connection,
        "CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM set_config('lock_timeout', '20s', true), pg_advisory_xact_lock(4711); "
        "RETURN NULL; END $$",
    )
    run_sql(
        connection,
        "CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT ON app_effect "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_for_test()",
    )
    connection.close()
    yield lambda: admin.execute("SELECT pg_advisory_unlock(4711)")
    admin.execute("SELECT pg_advisory_unlock_all()")
    connections["default"].close()
    run_sql(connection, "DROP TRIGGER wait_at_commit ON app_effect")
    run_sql(connection, "DROP FUNCTION wait_for_test()")


@contextmanager
def when_waiting_for_a_row(then):
    """Call `then` from another thread once some session waits for a row of the job table."""

    def watch():
        with psycopg.connect(url_in_use("default"), autocommit=True) as session:
            while not stop.is_set():
                found = session.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                    "AND query LIKE %s",
                    ["%FOR NO KEY UPDATE%"],
                ).fetchone()
                if found and found[0]:
                    then()
                    return
                stop.wait(0.01)

    stop = threading.Event()
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_session_that_is_still_committing_is_waited_for(bench: Bench, slow_commit):
    """A plain read would say "running" and run the job a second time."""

    def send_commit_and_cut(wrapper):
        raw = wrapper.connection
        raw.pgconn.send_query(b"COMMIT")
        raw.pgconn.flush()
        cut_line(raw)

    body, runs = counted(leave)
    with after_finish(send_commit_and_cut), when_waiting_for_a_row(slow_commit):
        ran = bench.run(body)
    assert runs == [1]
    assert ran.effects == ["done"]
    assert ran.ended.committed


def test_finish_and_commit_queued_without_a_lock_are_ended_before_the_verdict(bench: Bench, admin):
    """The old session may hold no lock yet: it is gone before anybody says "not committed"."""
    claim = bench.claim_one(leave, plain_job)
    admin.execute("SELECT pg_advisory_lock(4712)")
    old = psycopg.connect(url_in_use("default"), application_name=session_name(bench.identity))
    pid = old.info.backend_pid
    queued = (
        "BEGIN; SELECT pg_advisory_xact_lock(4712); "
        f"INSERT INTO app_effect (job_id, label, created) VALUES ('{claim.id}', 'late', now()); "
        f"{literal_finish(claim)}; COMMIT"
    )
    old.pgconn.send_query(queued.encode())
    old.pgconn.flush()
    cut_line(old)

    verdict = resolve_unknown_commit(bench.environment, claim, pid)

    assert verdict == "not committed"
    assert not is_there(admin, pid)
    admin.execute("SELECT pg_advisory_unlock(4712)")
    assert effects(claim.id) == []
    assert Job.objects.get(pk=claim.id).state == "running"
    old.close()


def literal_finish(claim) -> str:
    """Return the finishing statement with its values written in."""
    values = {
        "id": f"'{claim.id}'",
        "fence": str(claim.fence),
        "worker": f"'{claim.worker}'",
        "result": "'1'",
        "started_ago": "0.0",
        "idle_timeout": "'5s'",
    }
    return statement("postgresql", "finish_one", limit_idle="") % values


def test_a_session_of_somebody_else_with_that_pid_is_not_ended(bench: Bench, admin):
    """Pids come again: a session that does not bear this worker's name is none of ours."""
    claim = bench.claim_one(leave, plain_job)
    with psycopg.connect(url_in_use("default"), application_name="web") as other:
        verdict = resolve_unknown_commit(bench.environment, claim, other.info.backend_pid)
        assert verdict == "not committed"
        assert other.execute("SELECT 1").fetchone() == (1,)


def test_an_unknown_commit_is_asked_about_until_the_database_answers(bench: Bench, admin):
    asked = []

    def refuse_twice(storage, proceed):
        asked.append(1)
        if len(asked) <= 2:
            terminate(admin, session_pid(storage.connection))
        return proceed()

    with (
        after_finish(lambda c: commit_and_lose_the_answer(admin, c.connection)),
        faults.at("verdict", refuse_twice),
    ):
        ran = bench.run(leave)
    assert len(asked) == 3
    assert ran.ended.committed


# --- behind a pooler ----------------------------------------


def test_where_sessions_cannot_be_ended_a_late_commit_of_the_first_run_counts(make_bench):
    """The re-run's guard fails because the first run's COMMIT won after all: that is success."""
    bench = make_bench()
    bench.environment.direct = False
    commits = []

    def lose_line_then_commit_late(storage, proceed):
        answer = proceed()
        if not commits:
            late = psycopg.connect(url_in_use("default"))
            commits.append(late)
            cut_line(storage.connection.connection)
        return answer

    def commit_late(context):
        leave(context, "run again")
        if len(runs) == 2:  # the first run's session gets to its COMMIT only now
            late = commits[0]
            late.execute(
                "INSERT INTO app_effect (job_id, label, created) VALUES (%s, 'first run', now())",
                [str(context.job_id)],
            )
            late.execute(literal_finish(claim))
            late.commit()
            late.close()

    body, runs = counted(commit_late)
    claim = bench.claim_one(body)
    with faults.at("finish_one", lose_line_then_commit_late):
        ended = bench.execute(claim)
    assert ended.committed
    assert effects(claim.id) == ["first run"]
    assert Job.objects.get(pk=claim.id).state == "succeeded"


# --- batches ----------------------------------------


def test_a_loss_before_the_job_ran_a_statement_is_no_unknown_commit(bench: Bench, admin):
    """A job without effects finishes in a batch, whatever has become of its own session."""
    ran = bench.run(lambda context: terminate(admin, session_pid()))
    connection.close()  # the test reads on the session that the job lost
    assert ran.state == "succeeded"
