"""How ``jobs bulk`` shows operations: on a line, as a table, page or document; and cautions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from jobqueue.engine.counts import Count, numbered
from jobqueue.engine.obstacles import errors_of, obstacles_of_filter
from jobqueue.exceptions import InvalidFilter
from jobqueue.filters import Filter, parse
from jobqueue.management.formats import age, clock_time
from jobqueue.management.jobs_commands.base import Shell
from jobqueue.management.jobs_commands.table import printable, render
from jobqueue.models import BulkOperation

BAR_WIDTH = 24
LOCKED_SHOWN = 10


def bar(operation: BulkOperation) -> str:
    """Return how far an operation is, on one line."""
    total = numbered(Count(operation.total, "gte" if operation.total_is_capped else "eq"), "job")
    fraction = operation.fraction
    if fraction is None:
        return f"{operation.seen:,} of {total}"
    full = round(fraction * BAR_WIDTH)
    drawn = "#" * full + "-" * (BAR_WIDTH - full)
    return f"[{drawn}] {fraction:.0%}, {operation.seen:,} of {total}"


def counts(operation: BulkOperation) -> str:
    """Return what has happened to jobs so far."""
    return ", ".join(f"{n:,} {what}" for what, n in operation.counts.items()) or "nothing yet"


def table(shell: Shell, operations: Sequence[BulkOperation]) -> list[str]:
    """Return the lines of a list."""
    return render(
        ["no.", "verb", "state", "seen", "who", "began", "what happened", "filter"],
        [
            [
                str(operation.pk),
                operation.verb,
                operation.state,
                f"{operation.seen:,}/{operation.total:,}{'+' * operation.total_is_capped}",
                operation.actor,
                clock_time(operation.began_at),
                counts(operation),
                operation.filter or "ids",
            ]
            for operation in operations
        ],
        right=[0, 3],
        paint=lambda n, text: shell.style.ERROR if n == 2 and text == "failed" else None,
        header_paint=shell.style.MIGRATE_LABEL,
        width=shutil.get_terminal_size().columns if shell.is_terminal else None,
    )


def page(shell: Shell, operation: BulkOperation) -> Iterator[str]:
    """Yield the lines that tell all about one operation."""
    yield shell.style.MIGRATE_HEADING(f"bulk operation {operation.pk}: {operation.verb}")
    facts = {
        "state": operation.state,
        "progress": bar(operation),
        "so far": counts(operation),
        "jobs": operation.filter or numbered(len(operation.ids or []), "id"),
        "with": ", ".join(f"{name} {_shown(name, v)}" for name, v in operation.parameters.items()),
        "who": f"{operation.actor}, through {operation.surface}",
        "began": clock_time(operation.began_at),
        "last step": clock_time(operation.stepped_at),
        "ended": clock_time(operation.ended_at) if operation.ended_at else "",
        "waits": clock_time(operation.wait_until) if _waits(operation) else "",
        "error": operation.error,
        "locked": _locked(operation),
    }
    yield from (f"  {name:<10}{printable(text)}" for name, text in facts.items() if text)


def _shown(name: str, value: Any) -> str:
    if name == "spread":
        return f"over {age(value)}"
    return clock_time(datetime.fromisoformat(value)) if name == "run_at" else str(value)


def _waits(operation: BulkOperation) -> bool:
    return operation.is_running and operation.wait_until is not None


def _locked(operation: BulkOperation) -> str:
    shown = [str(UUID(job_id)) for job_id in operation.left[:LOCKED_SHOWN]]
    more = len(operation.left) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def cautions(shell: Shell, operation: BulkOperation) -> Iterator[str]:
    """Yield why the jobs of an operation would not run now, or would fail."""
    chosen = Filter()
    with suppress(InvalidFilter):
        chosen = parse(operation.filter)
    errors = errors_of(chosen, shell.database)
    found = obstacles_of_filter(operation.verb, chosen, errors, shell.backend)
    if found.no_worker:
        yield "No worker is alive: nothing runs until one starts."
    for queue in found.paused:
        told = f"Queue {queue.name} is paused by {queue.paused_by}. {queue.paused_reason}"
        yield printable(told).strip()
    for task in found.failing:
        yield printable(
            f"{task.failed:,} of {task.attempts:,} attempts of {task.task} failed in the last ten "
            "minutes: look at its errors first."
        )


def as_document(operation: BulkOperation) -> dict[str, Any]:
    """Return an operation as plain data, with stable names."""
    return {
        "id": operation.pk,
        "verb": operation.verb,
        "state": operation.state,
        "filter": operation.filter,
        "parameters": operation.parameters,
        "actor": operation.actor,
        "surface": operation.surface,
        "began_at": operation.began_at,
        "stepped_at": operation.stepped_at,
        "ended_at": operation.ended_at,
        "total": operation.total,
        "total_is_capped": operation.total_is_capped,
        "seen": operation.seen,
        "counts": operation.counts,
        "error": operation.error,
    }
