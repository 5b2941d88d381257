"""The world of each test: a database of its own kind, and processes that end with the test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from tests.plugin import SQLITE
from tests.process.databases import django_on, empty, migrate, new_database
from tests.process.harness import Site

failed_key = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.process)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.stash[failed_key] = report.failed
    return report


@pytest.fixture(scope="session")
def process_url(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[str]:
    """The URL of a migrated, empty database that real processes may commit to."""
    if request.config.getoption("database") == SQLITE:
        url = f"sqlite:///{tmp_path_factory.mktemp('process')}/process.sqlite3"
        with django_on(url, django_db_blocker):
            migrate()
        yield url
        return
    server_url = os.environ["TEST_DATABASE_URL"]
    with new_database(server_url, f"process_{os.getpid()}") as url:
        with django_on(url, django_db_blocker):
            migrate()
        yield url


@pytest.fixture
def site(
    request: pytest.FixtureRequest,
    process_url: str,
    tmp_path: Path,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Site]:
    """A database of committed rows, and processes on it; both are gone after the test."""
    with django_on(process_url, django_db_blocker):
        site = Site(process_url, tmp_path)
        try:
            yield site
        finally:
            site.end()
            if request.node.stash.get(failed_key, True):
                print(site.report())
            empty()


@pytest.fixture(scope="module")
def shared_site(
    request: pytest.FixtureRequest,
    process_url: str,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Site]:
    """The same for all tests of a module, whose processes go on; see `Site.renew`."""
    with django_on(process_url, django_db_blocker):
        site = Site(process_url, tmp_path_factory.mktemp("site"))
        try:
            yield site
        finally:
            site.end()
            if request.session.testsfailed:
                print(site.report())
            empty()
