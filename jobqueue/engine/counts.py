"""Counts that are honest about how far they were counted.

Nothing counts a big table: a count stops at a limit and says so, or is the database's own estimate
and says so. Surfaces show "10,000+" and "~2,000,000", the API `value` and `relation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import QuerySet

Relation = Literal["eq", "gte", "estimate"]

COUNT_LIMIT = 10_000
"""As far as anything is counted: some milliseconds, and more than anybody reads one by one."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number, and whether it is exactly that, at least that, or about that."""

    value: int
    relation: Relation = "eq"

    def __str__(self) -> str:
        """Return for example "17", "10,000+" or "~2,000,000"."""
        before = "~" if self.relation == "estimate" else ""
        return f"{before}{self.value:,}{'+' if self.relation == 'gte' else ''}"

    def __bool__(self) -> bool:
        return self.value > 0

    def __add__(self, other: Count) -> Count:
        relations = {self.relation, other.relation}
        worst: Relation = next((r for r in ("estimate", "gte") if r in relations), "eq")
        return Count(self.value + other.value, worst)


def numbered(count: int | Count, noun: str, plural: str = "") -> str:
    """Return for example "1 job", "3 jobs" or "10,000+ jobs"; plural: where it is not noun + s."""
    count = count if isinstance(count, Count) else Count(count)
    is_one = count.value == 1 and count.relation == "eq"
    return f"{count} {noun if is_one else plural or noun + 's'}"


def limited(value: int, limit: int = COUNT_LIMIT) -> Count:
    """Return what was counted up to `limit` + 1 as a count that stops at `limit`."""
    return Count(limit, "gte") if value > limit else Count(value)


def capped_count(queryset: QuerySet[Any], limit: int = COUNT_LIMIT) -> Count:
    """Count the rows of a queryset as far as `limit`.

    Its order is kept: an index that serves it is read no further than that. Without an order a
    plan may read the whole table in vain.
    """
    return limited(queryset[: limit + 1].count(), limit)
