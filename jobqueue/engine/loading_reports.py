"""Reading what jobs have said about themselves, for their results and for whoever looks at them."""

from __future__ import annotations

from typing import Any

from jobqueue.conf import options_for
from jobqueue.engine.loading import parsed_id
from jobqueue.results import JobLogLine, JobProgress

_PROGRESS = ("done", "total", "message", "reported_at", "fence")
_LINE = ("fence", "number", "logged_at", "level", "logger", "message")


def load_progress(result_id: Any, alias: str) -> JobProgress | None:
    """Return what the newest run of a job that said anything has said last; None for nothing."""
    from jobqueue.models import Progress

    rows = Progress.objects.using(options_for(alias).database).filter(job_id=parsed_id(result_id))
    newest = rows.order_by("-fence").values(*_PROGRESS).first()
    return None if newest is None else JobProgress(**newest)


def load_log(result_id: Any, alias: str, last: int | None = None) -> list[JobLogLine]:
    """Return the log lines of a job, of all its runs, in the order of runs and numbers.

    last: only so many, the newest.
    """
    from jobqueue.models import LogLine

    rows = LogLine.objects.using(options_for(alias).database).filter(job_id=parsed_id(result_id))
    newest = rows.order_by("-fence", "-number").values(*_LINE)[:last]
    return [JobLogLine(**row) for row in newest][::-1]
