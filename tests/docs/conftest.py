"""Fixtures of the documentation's tests: benches and real processes, as other folders have them."""

import pytest

from tests.engine.conftest import admin, bench, make_bench, no_body_left_over
from tests.plugin import SQLITE
from tests.process.conftest import process_url, pytest_runtest_makereport, site

__all__ = [
    "admin",
    "bench",
    "make_bench",
    "no_body_left_over",
    "process_url",
    "pytest_runtest_makereport",
    "site",
]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what uses the shop's tables: SQLite can make tables outside of transactions only."""
    on_sqlite = config.getoption("database") == SQLITE
    for item in items:
        if "tables" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.django_db(transaction=on_sqlite))
