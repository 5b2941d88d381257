"""Behind PgBouncer in transaction mode: leases and polling only, and the same promises."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from jobqueue.models import Worker
from project.servers import PgBouncer, PostgresServer
from tests.process.harness import outcomes
from tests.process.tasks import (
    nothing,
    wait_and_commit,
    wait_in_coroutine,
    write,
    write_and_wait,
)

pytestmark = pytest.mark.postgres_only("PgBouncer is PostgreSQL's")

POOL_SIZE = 3


@pytest.fixture(scope="module")
def pooled_url(process_url: str, postgres_server: PostgresServer) -> Iterator[str]:
    """Another way to the process database: few server sessions for many clients."""
    if not PgBouncer.available():
        pytest.skip("no pgbouncer on this machine")
    with PgBouncer(postgres_server.url, default_pool_size=POOL_SIZE) as pooler:
        yield pooler.url_of(urlsplit(process_url).path.lstrip("/"))


def test_every_kind_of_job_runs_once_over_three_server_sessions(site, pooled_url):
    site.folder.open_gate("gate")
    program = site.runworker("--processes", "2", url=pooled_url)
    assert "pooled" in program.wait_for("worker.started")["sessions"]
    for task in (write, nothing):
        task.enqueue_many([task.bind() for _ in range(40)])
    for task in (wait_and_commit, wait_in_coroutine):
        task.enqueue_many([task.bind("gate") for _ in range(10)])
    site.wait_until_done()
    site.assert_exactly_once()
    assert len(site.folder.notes("start")) == 100
    assert len(program.workers(2)) == len(program.events("process.started")) == 2
    assert not Worker.objects.filter(direct=True)
    assert program.stop() == 0


def test_killed_set_is_recovered_by_its_lease(site, pooled_url):
    victim = site.runworker(
        "--no-maintenance", url=pooled_url, LEASE_SECONDS=2, HEARTBEAT_SECONDS=0.3
    )
    job = write_and_wait.enqueue("gate")
    site.wait_for_note("written")
    victim.kill_all()
    site.folder.open_gate("gate")
    successor = site.runworker(url=pooled_url)
    site.wait_until_done()
    assert successor.events("worker.expired")
    assert outcomes(job.id) == ["lost", "succeeded"]
    site.assert_exactly_once()
