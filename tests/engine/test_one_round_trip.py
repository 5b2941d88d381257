"""Finish and COMMIT in one round trip: nobody has seen the guard's answer when COMMIT is sent."""

import pytest
from django.db import DataError, connection, connections, transaction

from jobqueue.models import Job
from jobqueue.storage import postgres_commit
from jobqueue.storage.connections import DIRECT_SETTING
from tests.engine import faults
from tests.engine.bench import Bench, Ran, effects, leave, storage_on
from tests.engine.cutting import cut_line, session_pid, terminate
from tests.engine.tasks import plain_job
from tests.engine.test_unknown_commit import literal_finish
from tests.storage.making import run_sql
from tests.waiting import wait_until

pytestmark = pytest.mark.postgres_only("SQLite has no round trips to save")


@pytest.fixture
def sent(monkeypatch):
    """What was sent to the server past Django's cursors."""
    found = []
    real = postgres_commit.send

    def send(session, text):
        found.append(text)
        real(session, text)

    monkeypatch.setattr(postgres_commit, "send", send)
    return found


def test_finish_and_commit_are_one_statement_to_the_server(bench: Bench, sent):
    bench.run(leave)
    sent.clear()
    ran = bench.run(leave)
    assert len(sent) == 1
    assert sent[0].rstrip().endswith("COMMIT")
    assert (ran.state, ran.effects, ran.attempt.outcome) == ("succeeded", ["done"], "succeeded")


def test_the_commit_behind_a_stale_finish_is_never_reached(bench: Bench, sent):
    bench.run(leave)
    sent.clear()
    claim = bench.claim_one(lambda context: leave(context, "zombie"))
    taken = bench.take_away(claim)
    ended = bench.execute(claim)
    assert len(sent) == 1
    assert (ended.is_success, ended.failure) == (False, None)
    assert effects(claim.id) == []
    assert Job.objects.get(pk=claim.id).worker == taken.worker


def test_hooks_run_after_the_commit_and_not_after_a_refused_one(bench: Bench):
    called = []

    def body(context):
        leave(context)
        transaction.on_commit(lambda: called.append(Ran(context.job_id).state))

    bench.run(body)
    claim = bench.claim_one(body)
    bench.take_away(claim)
    bench.execute(claim)
    assert called == ["succeeded"]


def test_an_answer_lost_after_both_were_done_is_found_out(bench: Bench, admin):
    runs = []

    def body(context):
        runs.append(1)
        leave(context)

    def done_but_unheard(storage, proceed):
        raw = storage.connection.connection
        raw.pgconn.send_query(f"{literal_finish(claim)}; COMMIT".encode())
        raw.pgconn.flush()
        wait_until(lambda: Ran(claim.id).state == "succeeded", "the COMMIT")
        cut_line(raw)
        return proceed()

    claim = bench.claim_one(body)
    with faults.at("finish_and_commit", faults.once(done_but_unheard)):
        ended = bench.execute(claim)
    assert ended.committed
    assert (runs, effects(claim.id)) == ([1], ["done"])


def test_a_session_ended_before_both_runs_the_job_again(bench: Bench, admin):
    def end_first(storage, proceed):
        terminate(admin, session_pid(storage.connection))
        return proceed()

    with faults.at("finish_and_commit", faults.once(end_first)):
        ran = bench.run(leave)
    assert (ran.state, ran.effects, ran.job.failures) == ("succeeded", ["done"], 0)


@pytest.mark.parametrize("forget", ["DEALLOCATE ALL", "DISCARD ALL"])
def test_a_session_that_forgot_its_statements_costs_no_job_an_attempt(bench: Bench, forget):
    """A job may have sent that, or a library that resets sessions."""
    bench.run(leave)
    bench.run(lambda context: run_sql(connection, forget) and None, plain_job)
    ran = bench.run(leave)
    assert (ran.state, ran.effects, ran.job.failures) == ("succeeded", ["done"], 0)


def test_a_job_that_forgets_the_sessions_statements_succeeds_all_the_same(bench: Bench):
    def body(context):
        leave(context)
        run_sql(connection, "DEALLOCATE ALL")

    bench.run(leave)
    ran = bench.run(body)
    assert (ran.state, ran.effects, ran.job.failures) == ("succeeded", ["done"], 0)


def test_behind_a_pooler_finish_and_commit_are_sent_one_after_the_other(bench: Bench, sent):
    """There the next statement may meet another session, which has prepared nothing."""
    connections.settings["default"][DIRECT_SETTING] = False
    assert bench.run(leave).effects == ["done"]
    assert sent == []


def test_another_schema_of_that_name_does_not_take_the_finish(bench: Bench):
    """A session prepared under one search path serves jobs that set another."""

    def body(context):
        leave(context)
        run_sql(connection, "SET LOCAL search_path TO tenant, public")

    bench.run(leave)
    run_sql(connection, "CREATE SCHEMA IF NOT EXISTS tenant")
    ran = bench.run(body)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
    run_sql(connection, "DROP SCHEMA tenant")


@pytest.mark.parametrize("text", ["it's", "back\\slash", "%(id)s %s %%", "'; ROLLBACK; --", "ä€🐘"])
def test_any_result_arrives_as_it_was(bench: Bench, text):
    def body(context):
        leave(context)
        return text

    assert bench.run(body).job.result == text


def test_a_job_that_changes_its_sessions_encoding_returns_what_it_returned(bench: Bench, sent):
    def body(context):
        leave(context)
        run_sql(connection, "SET LOCAL client_encoding = 'LATIN1'")
        return "é"

    bench.run(leave)
    sent.clear()
    assert bench.run(body).job.result == "é"
    assert sent == []


@pytest.mark.parametrize("result", ["1\0", '{"jobqueue_lease_lost'])
def test_a_result_that_cannot_be_stored_is_refused_for_what_it_is(bench: Bench, result):
    """A result that quotes our own mark says nothing about the lease."""
    claim = bench.claim_one(leave)
    storage = storage_on(connection, bench)
    with transaction.atomic():
        run_sql(connection, "SELECT 1")
        with pytest.raises(DataError):
            storage.finish_and_commit(claim, result, 1.0)
        transaction.set_rollback(True)
    assert Job.objects.get(pk=claim.id).state == "running"
