"""Jobs as CSV, for a ticket or a spreadsheet; without arguments, results and tracebacks.

Errors are told as `jobqueue.disclosure` says.

Spreadsheets run what begins like a formula, and names and errors come from anybody who can enqueue
a job: such cells begin with an apostrophe.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpResponse

from jobqueue.disclosure import shown_error

COLUMNS = (
    "id", "task", "queue", "state", "priority", "attempts", "failures", "suspicions", "reason",
    "error_class", "error_message", "error_fingerprint", "enqueued_at", "run_at", "finished_at",
)  # fmt: skip
MAX_MESSAGE = 1_000
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_csv(jobs: Iterable[Any], with_payload: bool) -> HttpResponse:
    """Return jobs as a file to download."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="jobs.csv"'
    writer = csv.writer(response)
    writer.writerow(COLUMNS)
    writer.writerows(_cells(job, with_payload) for job in jobs)
    return response


def _cells(job: Any, with_payload: bool) -> Iterator[str]:
    for name in COLUMNS:
        value = getattr(job, name)
        if name == "error_message":
            value = shown_error(
                value, task=job.task, may_see_payload=with_payload, most=MAX_MESSAGE
            )
        yield harmless("" if value is None else str(value))


def harmless(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
