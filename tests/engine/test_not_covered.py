"""What exactly-once does not cover: each test shows an effect that its job's roll-back leaves.

`docs/guarantees.md` names these tests. The last ones show what is covered although it looks alike.
"""

import asyncio
import threading

import psycopg
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection, connections, transaction

from project.servers import PostgresServer
from tests.app.models import Effect
from tests.engine.bench import Bench, leave
from tests.engine.tasks import atomic_job
from tests.storage.making import run_sql

POSTGRES = pytest.mark.postgres_only(
    "on SQLite nobody else can write while the job's transaction is open"
)


def failing(effect):
    """Return a body that leaves a covered effect and another one, and then fails."""

    def body(context):
        leave(context, "covered")
        effect(context)
        raise ValueError("rolls back")

    return body


async def leave_async(context, label):
    await Effect.objects.acreate(job_id=str(context.job_id), label=label)


# --- not covered ----------------------------------------


@POSTGRES
def test_a_thread_that_the_job_starts_is_not_covered(bench: Bench):
    def in_thread(context):
        def work():
            leave(context, "thread")
            connections.close_all()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert bench.run(failing(in_thread)).effects == ["thread"]


@POSTGRES
def test_an_event_loop_that_the_job_starts_is_not_covered(bench: Bench):
    async def work(context):
        await leave_async(context, "loop")
        await sync_to_async(connections.close_all)()

    ran = bench.run(failing(lambda context: asyncio.run(work(context))))
    assert ran.effects == ["loop"]


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_another_database_is_not_covered(bench: Bench):
    def elsewhere(context):
        Effect.objects.using("other").create(job_id=str(context.job_id), label="other")

    ran = bench.run(failing(elsewhere))
    assert ran.effects == []
    left = Effect.objects.using("other").filter(job_id=str(ran.id))
    assert [effect.label for effect in left] == ["other"]
    left.delete()


@POSTGRES
def test_what_a_raw_commit_commits_is_not_covered(bench: Bench):
    ran = bench.run(failing(lambda context: run_sql(connection, "COMMIT")))
    assert (ran.state, ran.effects) == ("retrying", ["covered"])


@pytest.mark.sqlite_only("only sqlite3 has executescript, which commits first")
def test_what_executescript_commits_is_not_covered(bench: Bench):
    def script(context):
        connection.connection.executescript("SELECT 1;")

    ran = bench.run(failing(script))
    assert (ran.state, ran.effects) == ("retrying", ["covered"])


@pytest.mark.postgres_only("SQLite has no sequences")
def test_a_sequence_is_not_covered(bench: Bench):
    run_sql(connection, "CREATE SEQUENCE not_covered")
    ran = bench.run(failing(lambda c: run_sql(connection, "SELECT nextval('not_covered')")))
    assert ran.effects == []
    assert run_sql(connection, "SELECT nextval('not_covered')") == [(2,)]
    run_sql(connection, "DROP SEQUENCE not_covered")


def test_an_unlogged_table_is_not_covered(disposable_postgres: PostgresServer):
    """The job has succeeded for good; what it wrote there is gone after a crash of the server."""
    with psycopg.connect(disposable_postgres.url, autocommit=True) as session:
        session.execute("CREATE TABLE finish (job integer)")
        session.execute("CREATE UNLOGGED TABLE effect (job integer)")
        with session.transaction():
            session.execute("INSERT INTO effect VALUES (1)")
            session.execute("INSERT INTO finish VALUES (1)")
    disposable_postgres.restart("immediate")
    with psycopg.connect(disposable_postgres.url) as session:
        assert session.execute("SELECT * FROM finish").fetchall() == [(1,)]
        assert session.execute("SELECT * FROM effect").fetchall() == []


def test_a_hook_of_a_process_that_dies_after_the_commit_never_runs(bench: Bench):
    """So what must happen after a job is a job enqueued in it."""

    class Died(BaseException):
        """Stands for the end of the process, right after COMMIT."""

    called = []

    def body(context):
        leave(context)
        transaction.on_commit(lambda: (_ for _ in ()).throw(Died))
        transaction.on_commit(lambda: called.append(1))
        bench.enqueue(leave)

    ran = bench.run(body)
    assert called == []
    assert ran.effects == ["done"]
    assert len(bench.claim(atomic_job)) == 1


# --- covered ----------------------------------------


def test_coroutines_run_through_async_to_sync_are_covered(bench: Bench):
    ran = bench.run(failing(lambda context: async_to_sync(leave_async)(context, "async")))
    assert ran.effects == []
    ran = bench.run(lambda context: async_to_sync(leave_async)(context, "async"))
    assert ran.effects == ["async"]


def test_a_job_enqueued_in_a_job_is_covered(bench: Bench):
    ran = bench.run(failing(lambda context: bench.enqueue(leave)))
    assert [claim.id for claim in bench.claim(atomic_job, limit=10)] == [ran.id]


def test_a_statement_past_djangos_cursor_is_covered(bench: Bench):
    def raw(context):
        connection.connection.execute(
            f"INSERT INTO app_effect (job_id, label, created) VALUES ('{context.job_id}', 'raw', "
            "CURRENT_TIMESTAMP)"
        )

    assert bench.run(failing(raw)).effects == []
    assert bench.run(raw).effects == ["raw"]


@pytest.mark.postgres_only("SQLite has none of these")
def test_what_a_job_leaves_on_its_session_is_not_covered(bench: Bench):
    """The next job of the thread finds it; SET LOCAL and their like end with the transaction."""

    def leaving(context):
        run_sql(connection, "SET work_mem = '5MB'")
        run_sql(connection, "SET LOCAL maintenance_work_mem = '5MB'")
        run_sql(connection, "SELECT pg_advisory_lock(7)")
        leave(context)

    def looking(context):
        locks = (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        return [
            run_sql(connection, "SHOW work_mem")[0][0],
            run_sql(connection, "SHOW maintenance_work_mem")[0][0] == "5MB",
            run_sql(connection, locks)[0][0],
        ]

    try:
        bench.run(leaving)
        assert bench.run(looking).job.result == ["5MB", False, 1]
    finally:
        connection.close()  # the next test finds nothing
