"""Pages of what belongs to one thing: the newest first, cut by a number that only grows.

`before` is where the page begins; `next` is the address of the one behind it, null at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue.api.answers import conditional
from jobqueue.api.serializers import StrictSerializer

MAX_NUMBER = 2**53 - 1
"""Beyond it no row of ours is numbered, and JavaScript could not say so."""


class PageQuery(StrictSerializer):
    """Which page."""

    before = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_NUMBER, help_text="As the address in `next` has."
    )
    limit = serializers.IntegerField(
        required=False, min_value=1, max_value=1_000, help_text="Entries of the page."
    )

    def validate_limit(self, limit: int) -> int:
        """Refuse more than MAX_PAGE_SIZE."""
        most = self.context["view"].options.max_page_size
        if limit > most:
            raise serializers.ValidationError(f"must be at most {most}")
        return limit


def page_of(
    view: Any,
    request: Request,
    rows: QuerySet[Any],
    column: str,
    shown: Callable[[Sequence[Any]], list[dict[str, Any]]],
) -> HttpResponse:
    """Return a page of `rows`, which `column` numbers, as an answer."""
    limit = view.query.get("limit", view.options.page_size)
    if "before" in view.query:
        rows = rows.filter(**{f"{column}__lt": view.query["before"]})
    found = list(rows.order_by(f"-{column}")[: limit + 1])
    document = {
        "results": shown(found[:limit]),
        "next": _next(request, found, limit, column),
    }
    return conditional(request, document)


def _next(request: Request, found: Sequence[Any], limit: int, column: str) -> str | None:
    if len(found) <= limit:
        return None
    kept = [(name, value) for name, value in request.query_params.items() if name != "before"]
    return f"{request.path}?{urlencode([*kept, ('before', getattr(found[limit - 1], column))])}"
