"""Fixtures: real commits on Django's connection, and storages on connections of their own."""

from pathlib import Path

import pytest
from django.db import connection

from jobqueue.control import Actor
from jobqueue.models import Rolling
from tests.storage.conftest import _django_db_helper, open_storage, other, storage
from tests.storage.making import run_sql

__all__ = ["_django_db_helper", "actor", "open_storage", "other", "storage"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here as using the database, with transactions that really commit."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture(autouse=True)
def _all_counted(_django_db_helper: None) -> None:
    """Let counting begin behind the ids that earlier tests have used up."""
    if connection.vendor == "postgresql":
        name = "pg_get_serial_sequence('jobqueue_attempt', 'id')"
        ((last,),) = run_sql(connection, f"SELECT coalesce(pg_sequence_last_value({name}), 0)")
        Rolling.objects.create(attempt_id=last)


@pytest.fixture
def actor() -> Actor:
    return Actor("kim", "shell")
