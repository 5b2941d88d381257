"""Fields of bodies that take the JSON type they say and no other, beside those of jobs."""

from __future__ import annotations

import math
from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from jobqueue.api.serializers import StrictSerializer


class Flag(serializers.BooleanField):
    """true or false, not text or a number that looks like one."""

    def to_internal_value(self, data: Any) -> bool:
        """Return `data` if it is a flag."""
        if not isinstance(data, bool):
            raise serializers.ValidationError("must be true or false")
        return data


class Number(serializers.FloatField):
    """A number, not text that looks like one."""

    def to_internal_value(self, data: Any) -> float:
        """Return `data` if it is a number."""
        is_number = isinstance(data, int | float) and not isinstance(data, bool)
        if not is_number or not math.isfinite(data):
            raise serializers.ValidationError("must be a number")
        return float(data)


class Nothing(StrictSerializer):
    """An empty object, which clients send that always send one; or no body at all."""


NOTHING = OpenApiExample("nothing", value={}, request_only=True)
