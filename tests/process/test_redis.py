"""Redis flushed and killed while jobs flow: it only carries hints."""

import signal

import pytest

from project.servers import RedisServer
from tests.process.harness import Site
from tests.waiting import wait_until

pytestmark = pytest.mark.postgres_only("hints are the same over any database")


def test_jobs_run_once_through_a_flush_and_a_crash_of_redis(site: Site, redis_server: RedisServer):
    from redis import Redis

    environment = {"REDIS_URL": redis_server.url}
    program = site.runworker("--processes", "2", environment=environment)
    assert len(program.workers(2)) == 2
    enqueuers = [site.enqueuer(100, environment=environment) for _ in range(2)]
    site.wait_for_note("start", count=20)
    with Redis.from_url(redis_server.url) as client:
        client.flushall()
    site.wait_for_note("start", count=80)
    redis_server.halt(signal.SIGKILL)
    program.wait_for("hints.listening_failed", via="redis")
    assert [enqueuer.wait() for enqueuer in enqueuers] == [0, 0]
    site.wait_until_done()
    redis_server.resume()
    program.wait_for("hints.listening_recovered", via="redis")
    wait_until(lambda: len(site.folder.notes("start")) == 200, "every job")
    site.assert_exactly_once()
    assert len(program.events("process.started")) == 2
    assert program.stop() == 0
