"""What a job says of itself, for ``jobs show``: its progress and its log lines."""

from __future__ import annotations

from collections.abc import Iterator

from jobqueue.engine.counts import numbered
from jobqueue.engine.loading_reports import load_log, load_progress
from jobqueue.management.formats import clock_time
from jobqueue.management.jobs_commands.base import Shell
from jobqueue.management.jobs_commands.table import printable
from jobqueue.models import Attempt, Job
from jobqueue.redaction import redact_text

LINES_SHOWN = 20
"""The newest log lines that are shown unless all are asked for."""


def progress_text(shell: Shell, job: Job) -> str:
    """Return how far the job has come, "" if it never said."""
    progress = load_progress(job.id, shell.backend)
    return "" if progress is None else f"{progress} ({clock_time(progress.reported_at)})"


def log_section(shell: Shell, job: Job, whole: bool) -> Iterator[str]:
    """Yield the lines of the page about what the job has logged."""
    lines = load_log(job.id, shell.backend, None if whole else LINES_SHOWN + 1)
    shown = lines if whole else lines[-LINES_SHOWN:]
    if not shown:
        return
    rows = Attempt.objects.using(shell.database).filter(job_id=job.id)
    numbers = dict(rows.values_list("fence", "number"))
    yield ""
    last = numbered(len(shown), "line")
    rest = "" if len(shown) == len(lines) else f" (the last {last}; --log shows all)"
    yield shell.style.MIGRATE_LABEL(f"log{rest}")
    for line in shown:
        attempt = numbers.get(line.fence)
        run = f"fence {line.fence}" if attempt is None else f"attempt {attempt}"
        text = redact_text(line.message, task=job.task, part="log")
        first, *others = text.splitlines() or [""]
        head = f"{clock_time(line.logged_at)}  {run}  {line.level_name} {line.logger}"
        yield f"  {printable(f'{head}: {first}')}"
        yield from (f"      {printable(text)}" for text in others)
