"""Marks what uses the tables of the documentation's shop."""

import pytest

from tests.plugin import SQLITE


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """SQLite can make tables outside of transactions only."""
    on_sqlite = config.getoption("database") == SQLITE
    for item in items:
        if "tables" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.django_db(transaction=on_sqlite))
