"""The walk of a bulk operation: ids upward, once, in portions that are bounded whatever matches.

The table is read in the order of its primary key, a window of rows at a time; only what a window
holds is compared. So a filter that matches little costs many short looks, not a long one.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from jobqueue.engine.bulk_plan import Choice
from jobqueue.engine.operations import MAX_ROWS
from jobqueue.filters import parse
from jobqueue.models import BulkOperation, Job

WINDOW = 10_000
"""Rows that one look reads, whether they match or not: bounds the time that a step takes."""
WINDOWS = 5
"""Looks in one step that may find nothing."""


def choice_of(operation: BulkOperation) -> Choice:
    """Return which jobs an operation means."""
    return Choice(
        verb=operation.verb,
        began=operation.began_at,
        chosen=parse(operation.filter),
        bindings=operation.bindings,
    )


def next_ids(operation: BulkOperation, database: str) -> list[UUID]:
    """Return the next portion, and move the cursor behind it; `walked` once there is no more."""
    if operation.ids is not None:
        return _next_of_list(operation, operation.ids)
    for _ in range(WINDOWS):
        ids = _next_of_window(operation, database)
        if ids or operation.walked:
            return ids
    return []


def _next_of_list(operation: BulkOperation, listed: Sequence[str]) -> list[UUID]:
    rest = [i for i in map(UUID, listed) if operation.cursor is None or i > operation.cursor]
    ids = rest[:MAX_ROWS]
    operation.cursor = ids[-1] if ids else operation.cursor
    operation.walked = len(rest) <= MAX_ROWS
    return ids


def _next_of_window(operation: BulkOperation, database: str) -> list[UUID]:
    ahead = Job.objects.using(database)
    matching = choice_of(operation).jobs(database)
    if operation.cursor is not None:
        ahead = ahead.filter(id__gt=operation.cursor)
        matching = matching.filter(id__gt=operation.cursor)
    end = ahead.order_by("id").values_list("id", flat=True)[WINDOW - 1 : WINDOW].first()
    if end is not None:
        matching = matching.filter(id__lte=end)
    ids = list(matching.order_by("id").values_list("id", flat=True)[:MAX_ROWS])
    if len(ids) == MAX_ROWS:
        operation.cursor = ids[-1]
    else:
        operation.cursor = end or operation.cursor
        operation.walked = end is None
    return ids
