"""The overview on the admin's page of this app: how things are, and what is wrong now."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _

from jobqueue import control, permissions
from jobqueue.admin import home, marks
from jobqueue.disclosure import shown_sentence
from jobqueue.engine.statistics import totals
from jobqueue.exceptions import JobQueueError
from jobqueue.states import CHARGED, Outcome

HOUR_SECONDS = 3_600.0
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
        "facts": _facts(current, hour),
        "as_of": marks.moment(current.as_of),
        "live_url": _live_page(),
    }


def _finding(request: HttpRequest, finding: control.Finding) -> dict[str, Any]:
    return {
        "badge": marks.badge(finding.severity),
        "sentence": marks.visible(marks.cut(_sentence(request, finding), 1_000)),
        "way_out": marks.visible(marks.cut(finding.way_out, 1_000)),
        "links": _links(request, finding),
    }


def _sentence(request: HttpRequest, finding: control.Finding) -> str:
    with_payload = permissions.may(request.user, permissions.VIEW_PAYLOAD)
    return shown_sentence(finding, may_see_payload=with_payload)


def _links(request: HttpRequest, finding: control.Finding) -> list[tuple[str, str]]:
    """Return where in the admin one does something about it."""
    jobs, workers = _url(request, "job"), (_("Workers"), _url(request, "worker"))
    errors, schedules = (
        (_("Errors"), _url(request, "errorgroup")),
        (_("Schedules"), _url(request, "schedule")),
    )
    running = (_("Running jobs"), f"{jobs}?state=running")
    unknown = urlencode({"state": "blocked", "q": 'reason:"unknown task"'})
    task = urlencode({"state": "any", "task": finding.subject, "error": "yes"})
    known = {
        "queue_paused": [(_("Paused queues"), f"{_url(request, 'queue')}?paused=1")],
        "queue_unserved": [(_("Queues"), _url(request, "queue")), workers],
        "no_worker": [workers],
        "unknown_tasks": [(_("These jobs"), f"{jobs}?{unknown}")],
        "dead_letters": [errors, (_("Dead letters"), _url(request, "deadletter"))],
        "task_failing": [errors, (_("Its jobs"), f"{jobs}?{task}")],
        "schedules_late": [schedules],
        "schedule_failing": [schedules],
        "version_drift": [workers],
        "clock_drift": [workers],
        "unreaped": [running],
        "overdue": [running],
        "unpromoted": [workers],
    }
    return known.get(finding.code, [])


def _facts(current: control.Status, hour: Any) -> list[tuple[str, Any]]:
    alive = [worker for worker in current.workers if not worker.is_expired]
    slots = sum(worker.slots for worker in alive if worker.kind == "worker")
    failed = sum(hour.outcomes.get(name, 0) for name in CHARGED)
    lost = hour.outcomes.get(Outcome.LOST, 0)
    return [
        (_("Oldest ready job"), marks.span(current.oldest_ready)),
        (_("Workers alive"), str(sum(worker.kind == "worker" for worker in alive))),
        (_("Slots"), str(slots)),
        (_("Attempts a minute"), f"{hour.per_minute:,.1f}"),
        (_("Attempts in the last hour"), f"{hour.attempts:,}"),
        (_("Of these failed"), f"{failed:,}"),
        (_("Lost with a worker, redone"), f"{lost:,}"),
        (_("Waited, p50 and p95"), _both(hour.wait)),
        (_("Ran, p50 and p95"), _both(hour.run)),
    ]


def _both(spread: Any) -> str:
    """Return two percentiles; none of a few samples."""
    if spread.count < HANDFUL:
        return marks.NOTHING
    return f"{marks.span(spread.p50)} / {marks.span(spread.p95)}"


def _url(request: HttpRequest, model: str) -> str:
    site = getattr(request, "current_app", None)
    return reverse(f"admin:jobqueue_{model}_changelist", current_app=site)


def _live_page() -> str:
    try:
        return reverse("jobqueue_live:page")
    except NoReverseMatch:
        return ""
