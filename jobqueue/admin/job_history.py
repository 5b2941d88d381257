"""What has happened to a job: its attempts, recorded steps, log lines, actions, and its payload.

Each part is one query, bounded; what may not be seen is not read.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from django.db.models import Case, F, OuterRef, Subquery, TextField, Value, When
from django.db.models.functions import Left
from django.utils.translation import gettext as _

from jobqueue.admin import home, marks, words
from jobqueue.admin.payloads import Shown, document_columns, shown_document
from jobqueue.admin.tracebacks import own_frames
from jobqueue.disclosure import READ_AHEAD, shown_error, shown_words
from jobqueue.engine.loading_reports import load_log
from jobqueue.models import Action, Attempt, Step, Worker
from jobqueue.redaction import redact_text
from jobqueue.results import JobLogLine
from jobqueue.states import Outcome

MAX_ATTEMPTS = 50
MAX_TRACEBACKS = 5
"""The newest attempts whose tracebacks are shown at once; others have pages."""
MAX_LINES = 100
MAX_STEPS = 100
MAX_STEP = 4_000
MAX_ACTIONS = 50
MAX_MESSAGE = 4_000

Context = dict[str, Any]


def rows_of(model: Any, job: Any) -> Any:
    """Return the rows of a model that belong to a job."""
    return model.objects.using(job._state.db).filter(job_id=job.pk)


def attempts_of(job: Any, with_payload: bool) -> list[Any]:
    """Return the newest attempts, with what a page shows of each."""
    worker = Worker.objects.filter(pk=OuterRef("worker"))
    recent = When(number__gt=job.attempts - MAX_TRACEBACKS, then=F("traceback"))
    shown = Case(recent, default=Value(""), output_field=TextField())
    rows = (
        rows_of(Attempt, job)
        .defer("traceback", "error_message")
        .annotate(
            error_head=Left("error_message", MAX_MESSAGE + READ_AHEAD),
            worker_name=Subquery(worker.values("name")[:1]),
            shown_traceback=shown if with_payload else Value("", output_field=TextField()),
        )
    )
    found = list(rows.order_by("-number")[:MAX_ATTEMPTS])
    for attempt, before in zip_longest(found, found[1:]):
        _dress(attempt, before, with_payload)
    return found


def _dress(attempt: Any, before: Any, with_payload: bool) -> None:
    message = shown_error(
        attempt.error_head, task=attempt.task, may_see_payload=with_payload, most=MAX_MESSAGE
    )
    traceback = redact_text(attempt.shown_traceback, task=attempt.task, part="error")
    seconds = (attempt.finished_at - attempt.started_at).total_seconds()
    since = attempt.due_at
    if before is not None and before.outcome == Outcome.LOST:
        since = before.finished_at  # its own time, before which its job was due, is no wait
    waited = (attempt.started_at - since).total_seconds() if since else None
    attempt.shown = {
        "badge": marks.badge(attempt.outcome),
        "is_free": not attempt.charged and attempt.outcome != Outcome.SUCCEEDED,
        "started": marks.moment(attempt.started_at),
        "took": marks.span(seconds),
        "waited": marks.span(waited),
        "worker": marks.text(attempt.worker_name or attempt.worker, 40),
        "error": marks.last_error(attempt.error_class, message),
        "frames": own_frames(traceback),
        "traceback": marks.visible(traceback),
    }


def steps_of(job: Any, with_payload: bool) -> list[Context]:
    """Return the recorded steps; their results only for whoever may see them."""
    columns = document_columns("result") if with_payload else {}
    rows = rows_of(Step, job).defer("result")
    for name, expression in columns.items():
        rows = rows.annotate(**{name: expression})
    return [_step(job, step, with_payload) for step in rows.order_by("id")[:MAX_STEPS]]


def _step(job: Any, step: Any, with_payload: bool) -> Context:
    shown = Shown()
    if with_payload:
        shown = shown_document(step.result_text, step.result_size, task=job.task, part="step")
    return {
        "name": marks.text(step.name),
        "recorded": marks.moment(step.recorded_at),
        "fence": step.fence,
        "result": marks.cut(shown.text, MAX_STEP),
        "note": shown.note,
    }


def log_of(job: Any, with_payload: bool) -> list[Context]:
    """Return the newest log lines; what they say only for whoever may see payloads."""
    lines = load_log(job.pk, home.alias(), MAX_LINES)
    return [_line(job, line, with_payload) for line in lines]


def _line(job: Any, line: JobLogLine, with_payload: bool) -> Context:
    text = shown_words(line.message, task=job.task, may_see_payload=with_payload)
    first, _newline, rest = (text or "").partition("\n")
    return {
        "at": marks.moment(line.logged_at),
        "level": marks.visible(line.level_name),
        "tone": "bad" if line.level >= 40 else "warn" if line.level >= 30 else "calm",
        "logger": marks.text(line.logger, 80),
        "message": marks.visible(first) if text is not None else _("(hidden)"),
        "more": marks.visible(rest),
        "fence": line.fence,
    }


def actions_of(job: Any) -> list[Any]:
    """Return what operators did to it, the newest first."""
    found = list(rows_of(Action, job).order_by("-id")[:MAX_ACTIONS])
    for action in found:
        detail = action.detail if isinstance(action.detail, dict) else {}
        action.shown = {
            "verb": words.verb(action.verb),
            "actor": marks.text(action.actor),
            "surface": words.surface(action.surface),
            "at": marks.moment(action.at),
            "reason": marks.text(detail.get("reason", "")),
        }
    return found


def payload_of(job: Any) -> list[tuple[str, Shown]]:
    """Return arguments and result as they are shown."""
    arguments = shown_document(
        job.arguments_text, job.arguments_size, task=job.task, part="arguments"
    )
    found = [(_("Arguments"), arguments)]
    if job.result_size is not None:
        result = shown_document(job.result_text, job.result_size, task=job.task, part="result")
        found.append((_("Result"), result))
    return found
