"""PostgreSQL restarted, crashed and away: nobody has to be started again, and no job is blamed."""

import signal
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from jobqueue.models import Job
from jobqueue.runtime.exit_codes import ABORTED, CLEAN
from project.servers import PostgresServer
from tests.plugin import POSTGRES
from tests.process.databases import django_on, migrate
from tests.process.harness import Program, Site, outcomes
from tests.process.tasks import nothing, wait_and_commit, write, write_and_wait
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def own_server(
    request: pytest.FixtureRequest, django_db_blocker: DjangoDbBlocker
) -> Iterator[PostgresServer]:
    if request.config.getoption("database") != POSTGRES:
        pytest.skip("starts a PostgreSQL: part of the run on PostgreSQL")
    with PostgresServer(durable=False) as server:
        with django_on(server.url, django_db_blocker):
            migrate()
        yield server


@pytest.fixture
def process_url(own_server: PostgresServer) -> str:
    """The site of these tests is on their own server."""
    return own_server.url


@pytest.fixture
def server(own_server: PostgresServer, site: Site) -> Iterator[PostgresServer]:
    """The site's server, which runs again when the site is cleared away."""
    yield own_server
    if not own_server.is_running:
        own_server.resume()


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_restart_in_the_middle_of_jobs_costs_no_attempt_and_no_process(site, server, how):
    program = site.runworker()
    middle = [write_and_wait.enqueue("gate"), wait_and_commit.enqueue("gate")]
    site.wait_for_note("start", count=2)
    later = write.using(run_after=timedelta(seconds=1)).enqueue()
    connection.close()
    server.restart(how)
    site.folder.open_gate("gate")
    site.wait_until_done()
    assert all(outcomes(job.id) == ["succeeded"] for job in [*middle, later])
    site.assert_exactly_once()
    assert len(program.events("process.started")) == 1
    assert program.stop() == CLEAN


def test_outage_longer_than_the_lease_ends_by_itself_and_suspects_nobody(site, server):
    health = site.path / "health.json"
    worker = site.runworker(
        "--no-maintenance", "--health-file", str(health), LEASE_SECONDS=2, HEARTBEAT_SECONDS=0.3
    )
    services = [site.start("runscheduler"), site.start("runreaper")]
    for service in services:
        service.wait_for("service.started")
    middle = write_and_wait.enqueue("gate")
    site.wait_for_note("written")
    wait_until(health.exists, "the health file")
    later = write.using(run_after=timedelta(seconds=1)).enqueue()
    connection.close()
    server.halt("fast")
    worker.wait_for("worker.self_exit")
    for service in services:
        service.wait_for("loop.failing")
    worker.wait_for("loop.failing")
    stale = health.stat().st_mtime
    late = site.runworker()
    assert late.wait() == 1
    assert "does not answer" in late.text()
    assert health.stat().st_mtime == stale
    site.folder.open_gate("gate")
    server.resume()
    nothing.enqueue()
    site.wait_until_done()
    assert outcomes(middle.id) == ["lost", "succeeded"]
    assert outcomes(later.id) == ["succeeded"]
    assert not Job.objects.exclude(suspicions=0)
    site.assert_exactly_once()
    for service in services:
        assert len(service.events("loop.failing")) == 1
        service.wait_for("loop.recovered")
        assert service.stop() == CLEAN
    assert worker.stop() == CLEAN


def test_signal_during_an_outage_stops_everything_without_the_database(site, server):
    worker = site.runworker(GRACE_SECONDS=1, LEASE_SECONDS=5)
    job = write_and_wait.enqueue("gate")
    site.wait_for_note("written")
    services = [site.start("runscheduler"), site.start("runreaper")]
    for service in services:
        service.wait_for("service.started")
    connection.close()
    server.halt("fast")
    worker.wait_for("database.away")
    for program in [worker, *services]:
        program.send(signal.SIGTERM)
    assert worker.wait() == ABORTED
    assert [service.wait() for service in services] == [CLEAN, CLEAN]
    server.resume()
    site.folder.open_gate("gate")
    site.runworker(LEASE_SECONDS=1, HEARTBEAT_SECONDS=0.3)
    site.wait_until_done()
    assert outcomes(job.id) == ["lost", "succeeded"]
    site.assert_exactly_once()


def test_database_that_is_read_only_for_a_while_costs_no_attempt_and_no_process(site, server):
    """As after a failover to a standby that is not promoted yet."""
    program = site.runworker("--log-level", "debug")
    job = write_and_wait.enqueue("gate")
    site.wait_for_note("written")
    set_read_only("on")
    site.folder.open_gate("gate")
    for what in ("Cannot ask for the fate", "The fetch loop failed"):
        wait_until(lambda: has_met_read_only(program, what), f"read-only: {what}")  # noqa: B023
    set_read_only("off")
    later = write.enqueue()
    site.wait_until_done()
    assert outcomes(job.id) == outcomes(later.id) == ["succeeded"]
    site.assert_exactly_once()
    assert len(program.events("process.started")) == 1


def has_met_read_only(program: Program, message: str) -> bool:
    """Return whether this debug message of the program is about a read-only database."""
    lines = program.text().splitlines()
    return any(message in line and "read-only transaction" in line for line in lines)


def set_read_only(value: str) -> None:
    """Change the database for all sessions to come, and end those there are."""
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute("SET transaction_read_only TO off")
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_read_only TO {value}")
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
