"""What all answers share: their base, counts, and the fields that many have."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobqueue.engine.counts import Count


class Document(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """An answer; it is made by a function, and only described by its class."""


@extend_schema_field({"description": "Any JSON value, also null."})
class AnyJSON(serializers.JSONField):
    """Any JSON value."""


class CountDocument(Document):
    """A number, and whether it is exactly that, at least that, or about that."""

    value = serializers.IntegerField(min_value=0)
    relation = serializers.ChoiceField(choices=["eq", "gte", "estimate"])


def count(of: Count) -> dict[str, Any]:
    """Return a count as it is answered."""
    return {"value": of.value, "relation": of.relation}


def nullable_time(help_text: str = "") -> serializers.DateTimeField:
    """Return the field of a time that may not have come."""
    return serializers.DateTimeField(allow_null=True, help_text=help_text)


def nullable_number(help_text: str = "") -> serializers.FloatField:
    """Return the field of a number that may not be known."""
    return serializers.FloatField(allow_null=True, help_text=help_text)


def counted(help_text: str = "") -> serializers.DictField:
    """Return the field of counts by name."""
    return serializers.DictField(child=CountDocument(), help_text=help_text)
