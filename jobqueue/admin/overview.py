"""The overview on the admin's page of this app: how things are, and what is wrong now."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobqueue import control, permissions
from jobqueue.admin import home, marks
from jobqueue.disclosure import shown_sentence
from jobqueue.engine.rollup_windows import RATE_MINUTES
from jobqueue.engine.statistics import totals
from jobqueue.exceptions import JobQueueError
from jobqueue.filters import Filter, term
from jobqueue.states import CHARGED, Outcome, State

HOUR_SECONDS = 3_600.0
COMMAND = re.compile(r"(manage\.py .+?)(?= or |\. |\.?$|[;(]| \()")
HANDFUL = 5
"""Below so many samples a percentile is one of them, and tells nothing of the others."""


def overview(request: HttpRequest) -> dict[str, Any]:
    """Return what the overview shows; nothing to whoever may not view jobs."""
    if not permissions.may(request.user, permissions.VIEW):
        return {"may_view": False}
    try:
        current = control.status(home.alias())
        hour = totals(HOUR_SECONDS, backend=home.alias())
    except JobQueueError as error:
        return {"may_view": True, "trouble": str(error)}
    return {
        "may_view": True,
        "findings": [_finding(request, finding) for finding in control.findings(current)],
        "counts": [
            (marks.badge(state), count, f"{_url(request, 'job')}?state={state}")
            for state, count in current.counts.items()
        ],
        "facts": _facts(request, current, hour),
        "as_of": marks.moment(current.as_of),
        "live_url": _live_page(),
    }


def _finding(request: HttpRequest, finding: control.Finding) -> dict[str, Any]:
    return {
        "badge": marks.badge(finding.severity),
        "sentence": marks.visible(marks.cut(_sentence(request, finding), 1_000)),
        "way_out": _way_out(finding.way_out),
        "links": _links(request, finding),
    }


def _sentence(request: HttpRequest, finding: control.Finding) -> str:
    with_payload = permissions.may(request.user, permissions.VIEW_PAYLOAD)
    return shown_sentence(finding, may_see_payload=with_payload)


def _way_out(text: str) -> SafeString:
    """Return what to do, with the commands in it as such."""
    parts = COMMAND.split(marks.visible(marks.cut(text, 1_000)))
    shown = ('<code class="jq-code">{}</code>' if n % 2 else "{}" for n in range(len(parts)))
    return format_html("".join(shown), *parts)


def _links(request: HttpRequest, finding: control.Finding) -> list[tuple[str, str]]:
    """Return where in the admin one does something about it."""
    jobs, workers = _url(request, "job"), (_("Workers"), _url(request, "worker"))
    errors, schedules = (
        (_("Errors"), _url(request, "errorgroup")),
        (_("Schedules"), _url(request, "schedule")),
    )
    operations = _("Bulk operations"), _url(request, "bulkoperation")
    letters = _("Dead letters"), _url(request, "deadletter")
    subject = quote(finding.subject or "none")
    operation = _("This operation"), _url(request, "bulkoperation", "change", subject)
    error = _("This error"), _url(request, "errorgroup", "change", subject)
    running = (_("Running jobs"), f"{jobs}?state=running")
    unknown = urlencode({"state": "blocked", "q": 'reason:"unknown task"'})
    task = urlencode({"state": "any", "task": finding.subject, "error": "yes"})
    named = marks.visible(marks.cut(finding.subject))
    queue = []
    if finding.queue:
        name = {"queue": marks.visible(marks.cut(finding.queue, 60))}
        page = _url(request, "queue", "change", quote(finding.queue))
        queue = [(_("Queue %(queue)s") % name, page)]
    known = {
        "queue_paused": [*queue, (_("Paused queues"), f"{_url(request, 'queue')}?paused=1")],
        "queue_unserved": [*queue, workers],
        "no_worker": [workers],
        "unknown_tasks": [(_("Jobs of %(tasks)s") % {"tasks": named}, f"{jobs}?{unknown}")],
        "bulk_failed": [operation, operations],
        "dead_letters": [error if finding.subject else errors, *queue, letters],
        "task_failing": [errors, (_("Its jobs"), f"{jobs}?{task}"), *queue],
        "schedules_late": [schedules],
        "schedule_failing": [schedules],
        "version_drift": [workers],
        "clock_drift": [workers],
        "unreaped": [running],
        "overdue": [running],
        "unpromoted": [workers],
    }
    return known.get(finding.code, [])


def _facts(request: HttpRequest, current: control.Status, hour: Any) -> list[tuple[str, Any]]:
    alive = [worker for worker in current.workers if not worker.is_expired]
    workers = [worker for worker in alive if worker.kind == "worker"]
    taking = [worker for worker in workers if not worker.draining]
    leaving = len(workers) - len(taking)
    failed = sum(hour.outcomes.get(name, 0) for name in CHARGED)
    lost = hour.outcomes.get(Outcome.LOST, 0)
    return [
        (_("Oldest ready job"), _oldest(request, current)),
        (
            _("Workers alive"),
            _and_draining(len(taking), leaving),
        ),
        (
            _("Slots"),
            marks.explained(
                _and_draining(
                    sum(worker.slots for worker in taking),
                    sum(worker.slots for worker in workers if worker.draining),
                ),
                _("(jobs that they run at once)"),
            ),
        ),
        (
            _("Attempts a minute"),
            marks.explained(
                f"{hour.per_minute:,.1f}",
                _("(in the last %(minutes)s minutes)") % {"minutes": RATE_MINUTES},
            ),
        ),
        (
            _("Attempts in the last hour"),
            marks.explained(
                f"{hour.attempts:,}", _("(%(failed)s of these failed)") % {"failed": f"{failed:,}"}
            ),
        ),
        (_("Interrupted, run again"), f"{lost:,}"),
        (_("Waited, p50 and p95"), _both(hour.wait)),
        (_("Ran, p50 and p95"), _both(hour.run)),
    ]


def _and_draining(count: int, draining: int) -> str:
    """Return how many there are that take jobs, and how many that only end theirs."""
    if not draining:
        return str(count)
    return _("%(count)s, and %(leaving)s draining") % {"count": count, "leaving": draining}


def _oldest(request: HttpRequest, current: control.Status) -> Any:
    """Return how long the oldest ready job has waited, and in which queue."""
    waiting = [queue for queue in current.queues if queue.oldest_ready_seconds is not None]
    if not waiting:
        return marks.NOTHING
    queue = max(waiting, key=lambda each: each.oldest_ready_seconds or 0.0)
    chosen = Filter((term("state", State.READY.value), term("queue", queue.name)))
    jobs = f"{_url(request, 'job')}?{urlencode({'q': str(chosen)})}"
    place = _("in queue %(queue)s") % {"queue": marks.visible(marks.cut(queue.name, 60))}
    shown = format_html("{} {}", marks.span(queue.oldest_ready_seconds), marks.link(jobs, place))
    return marks.explained(shown, _("(paused)")) if queue.paused else shown


def _both(spread: Any) -> Any:
    """Return two percentiles of the last hour; none of a few samples."""
    if spread.count < HANDFUL:
        return marks.NOTHING
    both = f"{marks.span(spread.p50)} / {marks.span(spread.p95)}"
    return marks.explained(both, _("(in the last hour)"))


def _url(request: HttpRequest, model: str, page: str = "changelist", *args: Any) -> str:
    site = getattr(request, "current_app", None)
    return reverse(f"admin:jobqueue_{model}_{page}", args=args, current_app=site)


def _live_page() -> str:
    try:
        return reverse("jobqueue_live:page")
    except NoReverseMatch:
        return ""
