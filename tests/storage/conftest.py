"""Fixtures of the conformance suite: every test runs on the database that the run has chosen."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection
from pytest_django import DjangoDbBlocker

from jobqueue.storage import Storage, life_file, storage_for
from jobqueue.storage.connections import open_connection
from tests.app.models import Effect
from tests.storage.making import run_sql

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here as using the database, with transactions that really commit."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture
def _django_db_helper(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Stand in for pytest-django's: its TRUNCATE of every table takes longer than most tests."""
    with django_db_blocker.unblock():
        yield
        for path, (_, descriptor) in list(life_file._held.items()):
            os.close(descriptor)
            path.unlink(missing_ok=True)
            del life_file._held[path]
        for model in [*apps.get_app_config("jobqueue").get_models(), Effect]:
            run_sql(connection, f"DELETE FROM {model._meta.db_table}")


@pytest.fixture
def open_storage() -> Iterator[Callable[[], Storage]]:
    """Opens storages on connections of their own, as each process of a fleet has them."""
    opened = []

    def open_one() -> Storage:
        opened.append(open_connection("default"))
        return storage_for(opened[-1])

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def storage(open_storage: Callable[[], Storage]) -> Storage:
    """A storage on a connection of its own."""
    return open_storage()


@pytest.fixture
def other(open_storage: Callable[[], Storage]) -> Storage:
    """A second storage, as another process has it."""
    return open_storage()
