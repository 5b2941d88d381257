"""Values as SQLite holds them, in Django's own formats, and time in whole microseconds.

SQLite has no type for a time: Django keeps text in UTC, which sorts like the time itself if it
always has the same length. So every time of ours has six decimals. UUIDs are 32 hex digits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.dateparse import parse_datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def adapted(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a statement with times, UUIDs and lists as SQLite takes them."""
    return {name: _adapt(value) for name, value in parameters.items()}


def time_text(value: datetime) -> str:
    """Return a time as text in UTC."""
    return time_of(value).astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def time_of(value: str | datetime) -> datetime:
    """Return a stored time; sqlite3 may have parsed it already. A naive one is in UTC."""
    parsed = parse_datetime(value) if isinstance(value, str) else value
    assert parsed is not None, f"{value!r} is not a time of ours"
    return parsed if timezone.is_aware(parsed) else parsed.replace(tzinfo=UTC)


def optional_time(value: str | datetime | None) -> datetime | None:
    """Return a stored time, or None."""
    return None if value is None else time_of(value)


def optional_id(value: str | None) -> UUID | None:
    """Return a stored UUID, or None."""
    return None if value is None else UUID(hex=value)


def microseconds(value: datetime) -> int:
    """Return the whole microseconds since 1970, exactly (floats lose them)."""
    return (value - _EPOCH) // _MICROSECOND


def after(value: datetime, seconds: float) -> datetime:
    """Return `value` plus (or minus, if negative) `seconds`."""
    return value + timedelta(seconds=seconds)


def _adapt(value: Any) -> Any:
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, list | tuple):
        return json.dumps(value, default=_hex)
    return value


def _hex(value: UUID) -> str:
    return value.hex
