"""Fixtures: real commits on Django's connection, and storages on connections of their own."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.storage.conftest import _django_db_helper, open_storage, other, storage

__all__ = ["_django_db_helper", "jobs", "open_storage", "other", "storage"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here as using the database, with transactions that really commit."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.django_db(transaction=True))


@dataclass
class Ran:
    """What a command printed, and the error that ended it."""

    out: str
    err: str
    error: CommandError | None

    @property
    def code(self) -> int:
        return self.error.returncode if self.error else 0

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def jobs() -> Callable[..., Ran]:
    """Runs ``manage.py jobs`` with the given words."""

    def run(*words: object, out: StringIO | None = None) -> Ran:
        out, err = out or StringIO(), StringIO()
        error = None
        try:
            call_command("jobs", *map(str, words), stdout=out, stderr=err)
        except CommandError as raised:
            error = raised
        return Ran(out.getvalue(), err.getvalue(), error)

    return run
