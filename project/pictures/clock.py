"""A clock that stands still: all pictures are of one moment, and the same when taken again."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db.backends.signals import connection_created
from django.utils import timezone

MOMENT = datetime(2026, 11, 30, 9, 24, 37, tzinfo=UTC)


def stop(at: datetime = MOMENT) -> None:
    """Let it be `at` for Django, and for SQLite, as long as this process lives."""
    timezone.now = lambda: at  # type: ignore[assignment]
    connection_created.connect(partial(_stop_database, at), weak=False)


def _stop_database(at: datetime, connection: Any, **_signal: Any) -> None:
    """Say what "now" is wherever SQL asks: our statements and Django's `Now` call strftime."""
    calendar = sqlite3.connect(":memory:", check_same_thread=False)
    moment = at.strftime("%Y-%m-%d %H:%M:%S.%f")

    def strftime(layout: str, when: str = "now", *changes: str) -> Any:
        given = moment if str(when).lower() == "now" else when
        marks = ", ?" * len(changes)
        return calendar.execute(
            f"SELECT strftime(?, ?{marks})", (layout, given, *changes)
        ).fetchone()[0]

    connection.connection.create_function("strftime", -1, strftime, deterministic=True)
