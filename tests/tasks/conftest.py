"""Fixtures of the Tasks API's tests."""

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import connections
from pytest_django import DjangoDbBlocker

from jobqueue import hints
from jobqueue.compat import task_enqueued
from tests.app.models import Effect


@pytest.fixture
def committing(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The databases without a transaction around the test: what it commits is committed.

    Cleans up by DELETE: a TRUNCATE of every table takes longer than most tests.
    """
    with django_db_blocker.unblock():
        yield
        for connection in connections.all(initialized_only=True):
            connection.rollback()
            with connection.cursor() as cursor:
                for model in [*apps.get_app_config("jobqueue").get_models(), Effect]:
                    cursor.execute(f"DELETE FROM {model._meta.db_table}")


@pytest.fixture
def sent_hints(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, set[str]]]:
    """The hints that are sent instead of reaching workers: (alias, queues)."""
    sent: list[tuple[str, set[str]]] = []
    monkeypatch.setattr(hints, "send", lambda alias, queues: sent.append((alias, set(queues))))
    return sent


@pytest.fixture
def announced() -> Iterator[list]:
    """The results that task_enqueued was sent with."""
    heard = []

    def hear(sender, task_result, **kwargs):
        heard.append(task_result)

    task_enqueued.connect(hear)
    yield heard
    task_enqueued.disconnect(hear)
