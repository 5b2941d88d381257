"""Fixtures: real commits on Django's connection, and storages on connections of their own."""

from pathlib import Path

import pytest

from jobqueue.control import Actor
from tests.storage.conftest import _django_db_helper, open_storage, other, storage

__all__ = ["_django_db_helper", "actor", "open_storage", "other", "storage"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here as using the database, with transactions that really commit."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture
def actor() -> Actor:
    return Actor("kim", "shell")
