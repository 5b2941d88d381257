"""Jobs as CSV, for a ticket or a spreadsheet; without arguments, results and tracebacks.

Spreadsheets run what begins like a formula, and names and errors come from anybody who can enqueue
a job: such cells begin with an apostrophe.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpResponse

from jobqueue.redaction import redact_text

COLUMNS = (
    "id", "task", "queue", "state", "priority", "attempts", "failures", "suspicions", "reason",
    "error_class", "error_message", "error_fingerprint", "enqueued_at", "run_at", "finished_at",
)  # fmt: skip
MAX_MESSAGE = 1_000
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_csv(jobs: Iterable[Any]) -> HttpResponse:
    """Return jobs as a file to download."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="jobs.csv"'
    writer = csv.writer(response)
    writer.writerow(COLUMNS)
    writer.writerows(_cells(job) for job in jobs)
    return response


def _cells(job: Any) -> Iterator[str]:
    for name in COLUMNS:
        value = getattr(job, name)
        if name == "error_message":
            value = redact_text(value[:MAX_MESSAGE], task=job.task, part="error")
        yield harmless("" if value is None else str(value))


def harmless(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
