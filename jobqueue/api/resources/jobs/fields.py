"""Fields that take the JSON type they say and no other, and times as a client writes them.

REST framework's own turn 7 into "7", "7" into 7 and trim text: a client that sent another type has
made a mistake, and a request must mean the same each time it is read.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime, parse_duration
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobqueue.surfaces import api_options


class Text(serializers.CharField):
    """Text, as it is."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        """Return `data` if it is text."""
        if not isinstance(data, str):
            raise serializers.ValidationError("must be text")
        return data


class Whole(serializers.IntegerField):
    """A whole number, not text that looks like one."""

    def to_internal_value(self, data: Any) -> int:
        """Return `data` if it is a whole number."""
        if isinstance(data, bool) or not isinstance(data, int):
            raise serializers.ValidationError("must be a whole number")
        return data


@extend_schema_field({"type": "integer", "minimum": -100, "maximum": 100})
class Priority(Whole):
    """A priority between MIN_PRIORITY and MAX_PRIORITY of the API."""

    def to_internal_value(self, data: Any) -> int:
        """Return `data` if a client may give it."""
        value = super().to_internal_value(data)
        low, high = api_options().min_priority, api_options().max_priority
        if not low <= value <= high:
            raise serializers.ValidationError(f"must be between {low} and {high}")
        return value


@extend_schema_field({"description": "Any JSON value that fits the task."})
class Anything(serializers.Field[Any, Any, Any, Any]):  # type: ignore[type-arg,unused-ignore]
    """Any JSON value, null too; the task's signature is the judge of it."""

    def run_validation(self, data: Any = None) -> Any:
        """Return `data`."""
        return data


@extend_schema_field(
    {
        "type": "string",
        "description": 'A time with its zone, such as "2030-01-31T08:00:00Z", or an ISO 8601 '
        'duration from now, such as "PT15M".',
    }
)
class Moment(serializers.Field[Any, Any, Any, Any]):  # type: ignore[type-arg,unused-ignore]
    """A time with its zone, or a duration from now: a datetime or a timedelta."""

    def to_internal_value(self, data: Any) -> datetime | timedelta:
        """Return what `data` means; nothing further ahead than MAX_DELAY."""
        value = _parsed(data) if isinstance(data, str) else None
        if value is None:
            raise serializers.ValidationError(
                'must be a time such as "2030-01-31T08:00:00Z" or a duration such as "PT15M"'
            )
        if isinstance(value, datetime) and timezone.is_naive(value):
            raise serializers.ValidationError('needs a zone: end it with "Z" or such as "+01:00"')
        ahead = value - timezone.now() if isinstance(value, datetime) else value
        if isinstance(value, timedelta) and value < timedelta():
            raise serializers.ValidationError("must not be negative")
        if ahead > timedelta(seconds=api_options().max_delay):
            days = api_options().max_delay / 86_400
            raise serializers.ValidationError(f"must not be more than {days:g} days ahead")
        return value


def _parsed(text: str) -> datetime | timedelta | None:
    try:
        is_duration = text.startswith(("P", "+P", "-P"))
        value = parse_duration(text) if is_duration else parse_datetime(text)
        if isinstance(value, datetime) and timezone.is_aware(value):
            return value.astimezone(UTC)
        return value
    except (ValueError, OverflowError):
        return None
