"""``jobs show``: all there is to know about one job."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandError

from jobqueue.engine.counts import numbered
from jobqueue.engine.operations import parse_ids
from jobqueue.management.formats import age, clock_time, outcome_word
from jobqueue.management.jobs_commands.base import Shell, Subcommand
from jobqueue.management.jobs_commands.list_jobs import last_error, state_color
from jobqueue.management.jobs_commands.show_reports import LINES_SHOWN, log_section, progress_text
from jobqueue.management.jobs_commands.table import printable, render
from jobqueue.models import Action, Attempt, CancelRequest, Job, JobTag, Step, Worker
from jobqueue.redaction import redact, redact_text

MAX_ATTEMPTS_SHOWN = 50
"""The newest attempts that are listed; a job that snoozes may have thousands."""


class Show(Subcommand):
    """Prints one job, top down from its state."""

    name = "show"
    help = (
        "Tell all about one job: its attempts, progress, last error, steps, tags, what it logged "
        "and what operators did. Arguments and results may be secret and are shown with --payload "
        "only."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", metavar="ID", help="id of a job")
        parser.add_argument(
            "--payload",
            action="store_true",
            help="also show arguments, result and steps' results, as far as REDACT lets",
        )
        parser.add_argument(
            "--log",
            action="store_true",
            help=f"show all log lines, not only the last {LINES_SHOWN}",
        )

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        (job_id,) = parse_ids([options["id"]])
        job = Job.objects.using(shell.database).filter(id=job_id).first()
        if job is None:
            raise CommandError(f"There is no job {job_id} in database {shell.database!r}.")
        for line in _page(shell, job, options["payload"], options["log"]):
            shell.write(line)


def _page(shell: Shell, job: Job, with_payload: bool, whole_log: bool) -> Iterator[str]:
    yield shell.style.MIGRATE_HEADING(printable(f"{job.task} {job.id}"))
    yield from _facts(shell, job)
    yield from _attempts(shell, job)
    yield from _last_traceback(shell, job)
    yield from _steps(shell, job, with_payload)
    yield from log_section(shell, job, whole_log)
    yield from _actions(shell, job)
    if with_payload:
        yield from _payload(shell, job)
    else:
        yield ""
        yield "Arguments and result are not shown; --payload shows them."


def _facts(shell: Shell, job: Job) -> Iterator[str]:
    color = state_color(shell, job.state) or str
    facts = {
        "queue": f"{job.queue}, priority {job.priority}, backend {job.backend}",
        "attempts": "; ".join(_tries(job)),
        "enqueued": clock_time(job.enqueued_at) + (f" by {job.created_by}" * bool(job.created_by)),
        "run at": clock_time(job.run_at),
        "finished": clock_time(job.finished_at),
        "timeout": f"{age(job.timeout)}, on crash: {job.on_crash}",
        "fence": f"{job.fence}; who holds a lower one is refused",
        "why": last_error({"reason": job.reason, **_error(job)}),
        "alike": f"jobs list fingerprint:{job.error_fingerprint}" * bool(job.error_fingerprint),
        "copy of": str(job.copied_from or ""),
        "schedule": f"{job.schedule}, tick {clock_time(job.tick)}" if job.schedule else "",
        "limit": job.limit_key or "",
        "tags": ", ".join(_tags(shell, job)),
        "progress": progress_text(shell, job),
    }
    if job.worker is not None:
        facts["runs on"] = f"{_worker_name(shell, job)}, deadline {clock_time(job.deadline)}"
        facts["asked"] = _request(shell, job)
    yield f"  {'state':<10}{color(job.state)}"
    yield from (f"  {name:<10}{printable(text)}" for name, text in facts.items() if text)


def _tries(job: Job) -> Iterator[str]:
    """Yield how often the job has run, and how much of its budget of failures that took."""
    yield f"{job.attempts:,} so far"
    if job.max_attempts is None:
        yield f"{numbered(job.failures, 'failure')}, of which it may have any number"
    else:
        yield f"{job.failures:,} of at most {numbered(job.max_attempts, 'failure')} used up"
    if job.suspicions:
        yield f"{numbered(job.suspicions, 'suspicion')} of having killed its worker"
    if job.alone:
        yield "runs alone"


def _request(shell: Shell, job: Job) -> str:
    """Return what somebody asked a running job to do, if anybody did."""
    request = CancelRequest.objects.using(shell.database).filter(job_id=job.id).first()
    return f"to stop: {request.reason}, {clock_time(request.requested_at)}" if request else ""


def _error(of: Job | Attempt) -> dict[str, str]:
    message = redact_text(of.error_message, task=of.task, part="error")
    return {"error_class": of.error_class, "error_message": message}


def _tags(shell: Shell, job: Job) -> list[str]:
    tags = JobTag.objects.using(shell.database).filter(job_id=job.id)
    return list(tags.order_by("tag").values_list("tag", flat=True))


def _worker_name(shell: Shell, job: Job) -> str:
    workers = Worker.objects.using(shell.database).defer("tasks")
    worker = workers.filter(id=job.worker).first() if job.worker else None
    return str(worker) if worker else f"{job.worker} (no row: it will be taken back)"


def _attempts(shell: Shell, job: Job) -> Iterator[str]:
    attempts = Attempt.objects.using(shell.database).filter(job_id=job.id).defer("traceback")
    newest = list(attempts.order_by("-number")[: MAX_ATTEMPTS_SHOWN + 1])
    if not newest:
        yield ""
        yield "No attempt has ended."
        return
    shown = newest[:MAX_ATTEMPTS_SHOWN][::-1]
    ids = {attempt.worker for attempt in shown}
    workers = Worker.objects.using(shell.database).filter(id__in=ids).defer("tasks")
    names = {worker.id: str(worker) for worker in workers}
    yield ""
    if len(newest) > MAX_ATTEMPTS_SHOWN:
        yield f"(the last {MAX_ATTEMPTS_SHOWN} of {numbered(job.attempts, 'attempt')})"
    yield from render(
        ["attempt", "outcome", "started", "took", "worker", "error"],
        [
            [
                str(attempt.number),
                outcome_word(attempt.outcome)
                + (", counts as a failure" if attempt.charged else ""),
                clock_time(attempt.started_at),
                age((attempt.finished_at - attempt.started_at).total_seconds()),
                names.get(attempt.worker, str(attempt.worker)),
                last_error({"reason": "", **_error(attempt)}),
            ]
            for attempt in shown
        ],
        right=[0, 3],
        header_paint=shell.style.MIGRATE_LABEL,
    )


def _last_traceback(shell: Shell, job: Job) -> Iterator[str]:
    attempts = Attempt.objects.using(shell.database).filter(job_id=job.id).exclude(traceback="")
    last = attempts.order_by("-number").first()
    if last is not None:
        yield ""
        yield shell.style.MIGRATE_LABEL(f"traceback of attempt {last.number}")
        shown = redact_text(last.traceback, task=job.task, part="error")
        yield from (f"  {printable(line)}" for line in shown.splitlines())


def _steps(shell: Shell, job: Job, with_payload: bool) -> Iterator[str]:
    steps = list(Step.objects.using(shell.database).filter(job_id=job.id).order_by("id"))
    if steps:
        yield ""
        yield from render(
            ["step", "recorded", "fence", *(["result"] if with_payload else [])],
            [
                [step.name, clock_time(step.recorded_at), str(step.fence)]
                + ([_json(job, "step", step.result)] if with_payload else [])
                for step in steps
            ],
            header_paint=shell.style.MIGRATE_LABEL,
        )


def _actions(shell: Shell, job: Job) -> Iterator[str]:
    actions = list(Action.objects.using(shell.database).filter(job_id=job.id).order_by("id"))
    if actions:
        yield ""
        yield from render(
            ["action", "who", "through", "when", "why"],
            [
                [
                    action.verb,
                    action.actor,
                    action.surface,
                    clock_time(action.at),
                    str((action.detail or {}).get("reason", "")),
                ]
                for action in actions
            ],
            header_paint=shell.style.MIGRATE_LABEL,
        )


def _payload(shell: Shell, job: Job) -> Iterator[str]:
    for name, value in (("arguments", job.arguments), ("result", job.result)):
        yield ""
        yield shell.style.MIGRATE_LABEL(name)
        yield f"  {_json(job, name, value)}"


def _json(job: Job, part: str, value: Any) -> str:
    shown = redact(value, task=job.task, part=part)
    return printable(json.dumps(shown, ensure_ascii=False, default=str))
