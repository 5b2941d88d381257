"""Fixtures of the runtime's tests: the same bench, and processes' parts driven by hand."""

from pathlib import Path

import pytest

from tests.engine.conftest import (
    _django_db_helper,
    admin,
    bench,
    make_bench,
    no_body_left_over,
)

__all__ = ["_django_db_helper", "admin", "bench", "make_bench", "no_body_left_over"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here as using the database, with transactions that really commit."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.django_db(transaction=True))
