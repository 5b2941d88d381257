"""Claims: a crash around their COMMIT loses nothing, and no two processes get the same job."""

import json
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection
from psycopg import IsolationLevel

from jobqueue.conf import ASYNC_SLOTS
from jobqueue.models import Job, Worker
from tests.process.harness import outcomes
from tests.process.tasks import nothing, nothing_plain, write
from tests.storage.making import run_sql
from tests.waiting import wait_until

BATCH = 100
ENQUEUERS = 3
SERIALIZABLE = int(IsolationLevel.SERIALIZABLE)


@pytest.mark.parametrize(
    ("point", "fence"), [("claim.before_commit", 1), ("claim.after_commit", 2)]
)
def test_crash_around_the_commit_of_a_claim_loses_and_charges_nothing(site, point, fence):
    program = site.runworker("--threads", str(BATCH))
    site.folder.plant(point, "exit")
    jobs = enqueue_batch()
    assert site.wait_for_note("fault")["jobs"] == BATCH
    site.wait_until_done()
    program.wait_for("process.exited", code=9)
    for job in jobs:
        assert outcomes(job.id) == ["succeeded"]
        assert Job.objects.get(pk=job.id).fence == fence
    assert len(site.folder.notes("start")) == BATCH
    assert program.stop() == 0


def test_claims_of_a_set_that_nobody_saw_die_come_back_too(site):
    victim = site.runworker("--no-maintenance", "--threads", str(BATCH), LEASE_SECONDS=2)
    site.folder.plant("claim.after_commit", "stop")
    jobs = enqueue_batch()
    site.wait_for_note("fault")
    victim.kill_all()
    site.runworker()
    site.wait_until_done()
    assert all(outcomes(job.id) == ["lost", "succeeded"] for job in jobs)
    assert len(site.folder.notes("start")) == BATCH


@pytest.mark.parametrize(
    "isolation",
    [None, pytest.param(SERIALIZABLE, marks=pytest.mark.postgres_only("one writer at a time"))],
)
def test_every_job_starts_once_however_many_claim_and_enqueue(site, isolation):
    options = {"isolation_level": isolation} if isolation else {}
    environment = {"TEST_DATABASE": json.dumps({"OPTIONS": options})}
    program = site.runworker("--processes", "4", environment=environment)
    enqueuers = [site.enqueuer(100, environment=environment) for _ in range(ENQUEUERS)]
    assert [enqueuer.wait() for enqueuer in enqueuers] == [0] * ENQUEUERS
    site.wait_until_done()
    attempts = list(Job.objects.values_list("attempts", flat=True))
    assert len(site.folder.notes("start")) == sum(attempts) + len(program.events("job.rerun"))
    # Serializable jobs may run into each other more often than they are run again for nothing.
    assert isolation or set(attempts) == {1}
    site.assert_exactly_once()
    assert len(program.workers(4)) == len(program.events("process.started")) == 4


@pytest.mark.postgres_only("a setting of the server")
def test_claims_do_not_feel_what_the_database_sets_for_everybody(site):
    with default_isolation("serializable"):
        program = site.runworker("--processes", "3")
        program.workers(3)
        write.enqueue_many([write.bind() for _ in range(200)])
        nothing.enqueue_many([nothing.bind() for _ in range(200)])
        site.wait_until_done()
        site.assert_exactly_once()
        assert not program.events("database.away")
        assert not program.events("loop.failing")


@contextmanager
def default_isolation(level):
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_isolation TO '{level}'")
        try:
            yield
        finally:
            cursor.execute(f"ALTER DATABASE {name} RESET default_transaction_isolation")


def enqueue_batch() -> list:
    """Enqueue jobs that all become visible at the same moment."""
    return nothing_plain.enqueue_many([nothing_plain.bind() for _ in range(BATCH)])


@pytest.fixture
def refused(site):
    """The database writes no success down until the test allows it."""
    statements = [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RAISE lock_not_available; END $$",
        "CREATE TRIGGER refuse BEFORE UPDATE ON jobqueue_job FOR EACH ROW"
        " WHEN (NEW.state = 'succeeded') EXECUTE FUNCTION refuse()",
    ]
    for statement in statements:
        run_sql(connection, statement)
    yield lambda: run_sql(connection, "DROP FUNCTION refuse CASCADE")
    run_sql(connection, "DROP FUNCTION IF EXISTS refuse CASCADE")


@pytest.mark.postgres_only("whoever writes there holds the only write lock")
def test_ends_that_cannot_be_written_stop_the_claims_and_fail_no_job(site, refused):
    jobs = nothing.enqueue_many([nothing.bind() for _ in range(260)])
    program = site.runworker("--threads", "1", BATCH=1)
    wait_until(lambda: len(site.folder.notes("start")) > ASYNC_SLOTS, "ends to pile up")
    began = Worker.objects.get().heartbeat_at
    pause = timedelta(seconds=1)
    wait_until(lambda: Worker.objects.get().heartbeat_at > began + pause, "the loop to turn on")
    refused()
    site.wait_until_done()
    assert {tuple(outcomes(job.id)) for job in jobs} == {("succeeded",)}
    assert program.stop() == 0
