"""Fixtures of the engine's tests: a bench is a worker whose jobs run in the test's own thread."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection, connections

from jobqueue.conf import options_for
from jobqueue.engine.environment import Environment
from jobqueue.storage import storage_for
from jobqueue.storage.connections import open_connection, prepare_process
from tests.conftest import url_in_use
from tests.engine import faults
from tests.engine.bench import Bench
from tests.engine.tasks import bodies
from tests.storage.conftest import _django_db_helper
from tests.storage.making import register

__all__ = ["_django_db_helper"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here as using the database, with transactions that really commit."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture(autouse=True)
def no_body_left_over() -> Iterator[None]:
    """Forget the bodies that a test has made."""
    yield
    bodies.clear()


@pytest.fixture
def make_bench(transactional_db: None) -> Iterator[Callable[..., Bench]]:
    """Makes workers; keywords are engine options."""
    made: list[Bench] = []
    settings = connections.settings["default"]
    before = copy.deepcopy(settings)

    def make(**options: Any) -> Bench:
        chosen = replace(options_for("default"), storage=faults.path(), **options)
        own = open_connection("default")
        storage = storage_for(own, chosen)
        environment = Environment(
            identity=register(storage),
            options=chosen,
            direct=connection.vendor == "postgresql",
        )
        # As in a worker: every session of this process bears its identity.
        prepare_process("default", environment.identity, chosen.lease_seconds, environment.direct)
        made.append(Bench(environment, storage))
        return made[-1]

    yield make
    settings.clear()
    settings.update(before)
    connections["default"].close()
    for bench in made:
        bench.environment.close()
        bench.storage.connection.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    """One worker with the default options."""
    return make_bench()


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[Any]]:
    """A plain session of PostgreSQL beside all others, in autocommit."""
    with psycopg.connect(url_in_use("default"), autocommit=True) as session:
        yield session
