"""Fixtures: real commits on Django's connection, and storages on connections of their own."""

from pathlib import Path

import pytest

from tests.storage.conftest import _django_db_helper, open_storage, other, storage
from tests.unit import conftest as _hypothesis  # its profile

__all__ = ["_django_db_helper", "_hypothesis", "open_storage", "other", "storage"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks the database, with transactions that really commit."""
    for item in items:
        if HERE in item.path.parents and "storage" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.django_db(transaction=True))
