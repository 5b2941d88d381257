"""What docs/guarantees.md says is not covered: each shown to be so, so that nobody relies on it.

Every job here fails after it has done something; what is left over was not the job's own write.
"""

import asyncio
import threading

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections

from jobqueue.models import Job
from tests.app.models import Effect
from tests.engine.bench import Bench, leave
from tests.process.harness import outcomes
from tests.storage.making import run_sql

one_writer = pytest.mark.postgres_only("SQLite has one writer: the job's own transaction")
in_the_engine = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def in_a_thread(context):
    def work():
        leave(context)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def in_an_event_loop(context):
    def work():
        leave(context)
        connections.close_all()

    asyncio.run(sync_to_async(work)())


def failing_after(do):
    def body(context):
        do(context)
        raise ValueError("fails after the effect")

    return body


@one_writer
@in_the_engine
@pytest.mark.parametrize("do", [in_a_thread, in_an_event_loop])
def test_what_another_thread_of_the_job_writes_is_not_rolled_back(bench: Bench, do):
    ran = bench.run(failing_after(do))
    assert (ran.state, ran.effects) == ("retrying", ["done"])


@in_the_engine
def test_what_the_job_writes_to_another_alias_is_not_rolled_back(bench: Bench):
    def write(context):
        Effect.objects.using("other").create(job_id=str(context.job_id))

    ran = bench.run(failing_after(write))
    assert ran.state == "retrying"
    assert Effect.objects.using("other").filter(job_id=str(ran.id)).count() == 1
    Effect.objects.using("other").all().delete()


@in_the_engine
def test_what_the_job_commits_itself_is_not_rolled_back(bench: Bench):
    def commit(context):
        leave(context)
        run_sql(connection, "COMMIT")

    ran = bench.run(failing_after(commit))
    assert (ran.state, ran.effects) == ("retrying", ["done"])


@in_the_engine
@pytest.mark.sqlite_only("executescript is SQLite's")
def test_executescript_commits_what_the_job_wrote_before_it(bench: Bench):
    def script(context):
        leave(context)
        connection.connection.executescript("SELECT 1;")

    ran = bench.run(failing_after(script))
    assert (ran.state, ran.effects) == ("retrying", ["done"])


@in_the_engine
@pytest.mark.postgres_only("SQLite has no sequences")
def test_a_sequence_does_not_go_back(bench: Bench):
    run_sql(connection, "CREATE SEQUENCE tickets")
    try:
        bench.run(failing_after(lambda context: run_sql(connection, "SELECT nextval('tickets')")))
        assert run_sql(connection, "SELECT nextval('tickets')") == [(2,)]
    finally:
        run_sql(connection, "DROP SEQUENCE tickets")


def test_an_unlogged_table_is_empty_after_a_crash_of_the_server(disposable_postgres):
    with psycopg.connect(disposable_postgres.url) as session:
        for logged in ("UNLOGGED", ""):
            name = f"effects_{logged.lower()}"
            session.execute(f"CREATE {logged} TABLE {name} AS SELECT 1")
    disposable_postgres.restart("immediate")
    with psycopg.connect(disposable_postgres.url) as session:
        counts = [
            session.execute(f"SELECT count(*) FROM {name}").fetchone()
            for name in ("effects_unlogged", "effects_")
        ]
    assert counts == [(0,), (1,)]


@pytest.mark.process
def test_callbacks_of_a_process_that_dies_after_commit_never_run(site):
    from tests.docs.tasks import die_after_commit

    site.runworker(IMPORTS=["tests.docs.tasks"])
    job = die_after_commit.enqueue()
    site.wait_until_done()
    row = Job.objects.get(pk=job.id)
    assert (row.state, row.suspicions, outcomes(job.id)) == ("succeeded", 0, ["succeeded"])
    assert site.folder.notes("second callback") == []
    site.assert_exactly_once()
