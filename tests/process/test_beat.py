"""The beat's own session: losing it costs a healthy worker nothing, however it is lost."""

from collections.abc import Iterator

import pytest
from django.db import connection

from jobqueue.ids import lock_key
from jobqueue.models import Worker
from tests.process.harness import Site, outcomes, terminate
from tests.process.proxy import How, Proxy
from tests.process.tasks import write_and_wait
from tests.waiting import wait_until

pytestmark = pytest.mark.postgres_only("on SQLite a file lock says who lives")

KEEN = {"LEASE_SECONDS": 1, "HEARTBEAT_SECONDS": 0.3}
"""For a reaper, which waits one lease of its own before it trusts what it sees of life locks."""


@pytest.fixture
def proxy(process_url: str) -> Iterator[Proxy]:
    with Proxy(process_url) as proxy:
        yield proxy


def test_worker_whose_beat_loses_its_session_again_and_again_keeps_its_job(site):
    site.start("runreaper", **KEEN)
    program = site.runworker("--no-maintenance")
    job = write_and_wait.enqueue("gate")
    site.wait_for_note("written")
    worker = Worker.objects.get()
    site.wait_until_seen(worker)
    for _ in range(3):
        holder = lock_holder(worker)
        terminate([holder])
        wait_until(lambda: lock_holder(worker) not in (None, holder), "the life lock to be held")  # noqa: B023
    assert_seen_alive(site, worker)
    site.folder.open_gate("gate")
    site.wait_until_done()
    assert outcomes(job.id) == ["succeeded"]
    assert program.events("heartbeat.recovered")
    site.assert_exactly_once()


def test_session_that_only_the_server_still_has_is_ended_for_the_new_one(site, proxy):
    """Else the server would let go of the life lock some time later, and a reaper see that."""
    site.start("runreaper", **KEEN)
    half = proxy.cut(b"pg_advisory_lock", How.HALF)
    program = site.runworker("--no-maintenance", url=proxy.url(site.url))
    job = write_and_wait.enqueue("gate")
    site.wait_for_note("written")
    assert half.happens()
    worker = Worker.objects.get()
    program.wait_for("heartbeat.recovered")
    site.wait_until_seen(worker)
    proxy.release(half)
    assert_seen_alive(site, worker)
    site.folder.open_gate("gate")
    site.wait_until_done()
    assert outcomes(job.id) == ["succeeded"]
    site.assert_exactly_once()


def assert_seen_alive(site: Site, worker: Worker) -> None:
    """Wait until a reaper has looked often enough to miss a life lock; it must not have."""
    seen = len(site.folder.notes("look"))
    wait_until(lambda: len(site.folder.notes("look")) > seen + 5, "a reaper to look")
    worker.refresh_from_db()
    assert not worker.dead
    assert lock_key(worker.pk) in site.folder.notes("look")[-1]["locks"]


def lock_holder(worker: Worker) -> int | None:
    """Return the backend that holds a worker's life lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND (classid::bigint << 32) | objid::bigint = %s",
            [lock_key(worker.pk)],
        )
        row = cursor.fetchone()
        return row and row[0]
