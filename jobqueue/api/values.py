"""Values of rows as JSON that every client can read.

- Whole numbers beyond 2^53 are text (RFC 7493): JavaScript would round them without a word.
- What is no JSON at all (NaN, a lone surrogate, whatever a REDACT hook returns) is text, too; a
  row that somebody wrote by hand must not make its page an error.
- Times are in UTC, whatever the project's zone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jobqueue.conf import MAX_PAYLOAD_DEPTH
from jobqueue.models.fields import InvalidDocument
from jobqueue.models.schedule import aware

MAX_SAFE_INTEGER = 2**53 - 1


def moment(value: datetime | None) -> datetime | None:
    """Return a time of a row in UTC."""
    return None if value is None else aware(value).astimezone(UTC)


def is_unreadable(value: Any) -> bool:
    """Return whether a stored document is no JSON."""
    return isinstance(value, InvalidDocument)


def shown(value: Any, depth: int = 0) -> Any:
    """Return `value` as JSON that every client reads as it is meant."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > MAX_PAYLOAD_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {text(str(key)): shown(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(item, depth + 1) for item in value]
    return text(str(value))


def text(value: str) -> str:
    """Return `value` as text that UTF-8 has."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
