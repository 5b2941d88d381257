"""Fixtures that every part of the suite may use: the servers, and what child processes need."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import connections

from jobqueue.events import Event, subscribe
from project.servers import PgBouncer, PostgresServer, RedisServer
from tests.plugin import POSTGRES, server_key

CHECKOUT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> PostgresServer:
    """The run's own PostgreSQL. Do not stop or restart it: everybody uses it."""
    server = request.config.stash.get(server_key, None)
    if server is None:
        pytest.skip("the run did not start a PostgreSQL of its own")
    return server


@pytest.fixture
def disposable_postgres(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A PostgreSQL for one test, to be restarted, stopped and broken at will."""
    if request.config.getoption("database") != POSTGRES:
        pytest.skip("starts a PostgreSQL: part of the run on PostgreSQL")
    with PostgresServer(durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    """The run's own Redis; see `redis_url` and `redis_server`."""
    if not RedisServer.available():
        pytest.skip("no redis-server or valkey-server on PATH, and no wheel that brings one")
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> Iterator[RedisServer]:
    """The run's Redis, running and empty; a test may kill and flush it."""
    yield shared_redis
    if shared_redis.is_running:
        # Restarting is the flush that also ends a pause or a changed setting.
        shared_redis.restart()
    else:
        shared_redis.resume()


@pytest.fixture(scope="session")
def redis_url(shared_redis: RedisServer) -> str:
    """The URL of a running Redis of our own; it may hold what other tests left."""
    return shared_redis.url


@pytest.fixture(scope="session")
def pgbouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    """A PgBouncer in transaction mode in front of the run's PostgreSQL.

    It passes every database name through: `pgbouncer.url_of(settings_dict["NAME"])`.
    """
    if not PgBouncer.available():
        pytest.skip("no pgbouncer on this machine")
    with PgBouncer(postgres_server.url) as server:
        yield server


@pytest.fixture
def events() -> Iterator[list[Event]]:
    """The events of the test, as they happen."""
    seen: list[Event] = []
    stop = subscribe(seen.append)
    yield seen
    stop()


@pytest.fixture
def child_environment() -> dict[str, str]:
    """The environment for a process that works on the databases of the running test.

    The test itself has to commit what the process should see (`transaction=True`).
    """
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": str(CHECKOUT),
        "TEST_DATABASE_URL": url_in_use("default"),
        "TEST_OTHER_DATABASE_URL": url_in_use("other"),
    }


def url_in_use(alias: str) -> str:
    """Return the URL of the database that an alias names while the tests run."""
    settings = connections[alias].settings_dict
    if connections[alias].vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    user, password = quote(settings["USER"], safe=""), quote(settings["PASSWORD"], safe="")
    host = f"{settings['HOST']}:{settings['PORT']}"
    return f"postgresql://{user}:{password}@{host}/{quote(settings['NAME'])}"
