"""The page of one job: why it is where it is, what happened, and what may be pressed now.

A fixed number of queries, however long its history: each part is bounded, and says where it goes
on. Arguments, results and tracebacks are read only for whoever may see them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.translation import gettext as _

from jobqueue import control, permissions
from jobqueue.admin import effects, home, marks, words
from jobqueue.admin.base import OperationsAdmin
from jobqueue.admin.cautions import cautions_of, with_pause
from jobqueue.admin.job_forms import AT_ONCE, FORMS
from jobqueue.admin.job_history import (
    MAX_LINES,
    actions_of,
    attempts_of,
    log_of,
    payload_of,
    rows_of,
    steps_of,
)
from jobqueue.admin.meanings import meaning
from jobqueue.admin.payloads import document_columns
from jobqueue.admin.timeline import timeline
from jobqueue.conf import options_for
from jobqueue.disclosure import READ_AHEAD, shown_error, shown_key, shown_words
from jobqueue.engine.obstacles import LETS_RUN
from jobqueue.filters import term
from jobqueue.models import CancelRequest, Job, JobTag, Progress, Worker
from jobqueue.states import State

MAX_MESSAGE = 4_000

Context = dict[str, Any]


def job_context(site: OperationsAdmin, request: HttpRequest, job_id: UUID) -> Context | None:
    """Return what the template of a job's page shows, None if there is no such job."""
    with_payload = site.may(request, permissions.VIEW_PAYLOAD)
    job = _job(site, request, job_id, with_payload)
    if job is None:
        return None
    attempts = attempts_of(job, with_payload)
    actions = actions_of(job)
    buttons, warnings = _buttons(site, request, job)
    tags = list(rows_of(JobTag, job).order_by("tag").values_list("tag", flat=True)[:100])
    return {
        "title": marks.visible(marks.cut(job.task, 150)),
        "subtitle": str(job.pk),
        "job": job,
        "badge": marks.badge(job.state),
        "why": _why(job, with_payload),
        "facts": _facts(site, job, attempts, with_payload),
        "progress_message": marks.visible(_progress_message(job, with_payload)),
        "buttons": buttons,
        "cautions": warnings,
        "timeline": timeline(job, attempts, actions),
        "attempts": attempts,
        "hidden_attempts": max(job.attempts - len(attempts), 0),
        "steps": steps_of(job, with_payload),
        "tags": [(marks.text(tag, 100), site.jobs_url(term("tag", tag))) for tag in tags],
        "log": log_of(job, with_payload),
        "lines_shown": MAX_LINES,
        "lines_kept": options_for(home.alias()).log_lines,
        "actions": actions,
        "effects": effects.of_job(request, site.admin_site, job),
        "with_payload": with_payload,
        "payload": payload_of(job) if with_payload else [],
        "links": _links(site, job),
        "can_submit_again": with_payload and site.may(request, "enqueue"),
    }


# --- the job --------------------------------------------------------------------------------------


def _job(site: OperationsAdmin, request: HttpRequest, job_id: UUID, with_payload: bool) -> Any:
    progress = Progress.objects.filter(job_id=OuterRef("pk")).order_by("-fence")
    worker = Worker.objects.filter(pk=OuterRef("worker"))
    columns: dict[str, Any] = {"error_head": Left("error_message", MAX_MESSAGE + READ_AHEAD)}
    columns |= {
        f"progress_{name}": Subquery(progress.values(name)[:1])
        for name in ("done", "total", "message", "reported_at")
    }
    columns |= {f"worker_{name}": Subquery(worker.values(name)[:1]) for name in ("name", "host")}
    request_rows = CancelRequest.objects.filter(pk=OuterRef("pk"))
    columns["asked_reason"] = Subquery(request_rows.values("reason")[:1])
    columns["asked_at"] = Subquery(request_rows.values("requested_at")[:1])
    rows = with_pause(site.get_queryset(request).filter(pk=job_id))
    rows = rows.defer("arguments", "result", "trace_context", "error_message").annotate(**columns)
    if with_payload:
        for name in ("arguments", "result"):
            for column, expression in document_columns(name).items():
                rows = rows.annotate(**{column: expression})
    return rows.first()


def _why(job: Any, with_payload: bool) -> Context:
    message = shown_error(
        job.error_head, task=job.task, may_see_payload=with_payload, most=MAX_MESSAGE
    )
    return {
        "reason": marks.text(job.reason, 100) if job.reason else "",
        "error_class": marks.code(job.error_class) if job.error_class else "",
        "message": marks.visible(message),
    }


def _progress_message(job: Any, with_payload: bool) -> str:
    text = job.progress_message or ""
    return shown_words(text, task=job.task, may_see_payload=with_payload) or ""


def _facts(
    site: OperationsAdmin, job: Any, attempts: Sequence[Any], with_payload: bool
) -> list[tuple[str, Any]]:
    unique_key, limit_key = (
        shown_key(key, may_see_payload=with_payload) for key in (job.unique_key, job.limit_key)
    )
    facts: list[tuple[str, Any]] = [
        (_("Queue"), marks.link(site.jobs_url(term("queue", job.queue)), marks.text(job.queue))),
        (_("Priority"), marks.number(job.priority)),
        (_("Attempts that ended"), marks.number(job.attempts)),
        (_("Of these failed"), _failures(job, attempts)),
        (_("Run at"), marks.moment(job.run_at)),
        (_("Enqueued"), marks.moment(job.enqueued_at)),
        (_("Enqueued by"), marks.text(job.created_by) if job.created_by else ""),
        (_("Ended"), marks.moment(job.finished_at) if job.finished_at else ""),
        (_("Expires"), marks.moment(job.expires_at) if job.expires_at else ""),
        (_("Runs on"), _worker(site, job)),
        (_("Deadline"), marks.moment(job.deadline) if job.deadline else ""),
        (_("Asked to stop"), _asked(job)),
        (_("Time-out"), marks.span(job.timeout)),
        (_("Suspicions"), _suspicions(job)),
        (_("Schedule"), marks.text(job.schedule) if job.schedule else ""),
        (_("Unique key"), marks.text(unique_key) if unique_key else ""),
        (_("Limit"), marks.text(limit_key) if limit_key else ""),
        (_("Copy of"), _copied(site, job)),
        (_("Backend"), marks.explained(marks.text(job.backend), words.NOTES["backend"])),
        (_("Fence"), marks.explained(marks.number(job.fence), words.NOTES["fence"])),
    ]
    return [(name, value) for name, value in facts if value != ""]


def _failures(job: Any, attempts: Sequence[Any]) -> str:
    """Return how many attempts failed or timed out, and after how many it is a dead letter.

    Of a job with more attempts than its page reads, at least so many did.
    """
    charged = sum(attempt.charged for attempt in attempts)
    least = "+" * (job.attempts > len(attempts))
    numbers = {"all": f"{charged}{least}", "failed": job.failures, "most": job.max_attempts}
    was_requeued = charged > job.failures
    if job.max_attempts is None and was_requeued:
        return _("%(all)s, %(failed)s of them since it was requeued; without a limit") % numbers
    if job.max_attempts is None:
        return _("%(failed)s, without a limit") % numbers
    if was_requeued:
        told = _(
            "%(all)s, %(failed)s of them since it was requeued; %(most)s make it a dead letter"
        )
        return told % numbers
    return _("%(failed)s; %(most)s make it a dead letter") % numbers


def _worker(site: OperationsAdmin, job: Any) -> Any:
    if job.worker is None:
        return ""
    if job.worker_name is None:
        return _("%(id)s (no such worker: the job will be taken back)") % {"id": job.worker}
    shown = marks.text(f"{job.worker_name} ({job.worker_host})", 100)
    return marks.link(site.url_of("worker", "change", job.worker), shown)


def _asked(job: Any) -> Any:
    if job.asked_at is None:
        return ""
    return marks.lines([marks.moment(job.asked_at), marks.text(job.asked_reason or "", 100)])


def _suspicions(job: Any) -> Any:
    if not job.suspicions:
        return ""
    alone = _(" (runs alone)") if job.alone else ""
    return marks.explained(f"{job.suspicions}{alone}", words.NOTES["suspicions"])


def _copied(site: OperationsAdmin, job: Any) -> Any:
    if job.copied_from is None:
        return ""
    return marks.link(
        site.url_of("job", "change", job.copied_from), marks.short_id(job.copied_from)
    )


@dataclass(frozen=True, slots=True)
class Button:
    """A form of one verb. asks: it is not done at once, but folded away until it is wanted.

    tone: the class of a button that is unlike others.
    """

    verb: str
    label: str
    meaning: str
    tone: str
    url: str
    form: Any
    asks: bool


def _buttons(
    site: OperationsAdmin, request: HttpRequest, job: Any
) -> tuple[list[Button], list[Any]]:
    """Return what is allowed in the job's state and to this user, and what warns of it.

    Where something warns of letting the job run, that asks, too.
    """
    try:
        allowed = control.allowed_actions(State(job.state))
    except ValueError:
        return [], []
    verbs = [verb for verb in allowed if site.may(request, verb)]
    warnings = cautions_of(job, verbs)
    at_once = AT_ONCE - LETS_RUN if warnings else AT_ONCE
    buttons = [
        Button(
            verb=verb,
            label=words.verb(verb),
            meaning=meaning(verb, [job.queue]),
            tone=words.tone_of(verb),
            url=site.url_of("job", "do", job.pk, verb),
            form=_form(verb, job),
            asks=verb not in at_once,
        )
        for verb in verbs
    ]
    return buttons, warnings


def _form(verb: str, job: Any) -> Any:
    given: Mapping[str, Any] = {"priority": job.priority, "queue": job.queue, "run_at": job.run_at}
    form = FORMS[verb](initial=dict(given), auto_id=f"{verb}-%s")
    if verb == "cancel" and job.state != State.RUNNING:
        del form.fields["force"]
    return form


# --- where to go on -------------------------------------------------------------------------------


def _links(site: OperationsAdmin, job: Job) -> list[tuple[str, str]]:
    links = [(_("Jobs of this task"), site.jobs_url(term("task", job.task)))]
    if job.error_fingerprint:
        alike = term("fingerprint", job.error_fingerprint)
        links.append((_("Dead letters of this error"), site.jobs_url(term("state", "dead"), alike)))
        group = site.url_of("errorgroup", "change", job.error_fingerprint)
        links.append((_("This error over time"), group))
    if job.schedule:
        links.append((_("Jobs of this schedule"), site.jobs_url(term("schedule", job.schedule))))
    return links
