"""Queues: how much waits in each, how long, who paused it and why; pausing and resuming.

A queue has a row only once somebody set something on it, so the list comes from `jobqueue.control`:
the queues of the settings, those with ready jobs, and those with rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.admin.utils import quote, unquote
from django.db.models import CharField
from django.db.models import Count as Counted
from django.db.models.functions import Cast
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue import control, permissions
from jobqueue.admin import charts, home, marks
from jobqueue.admin.base import OperationsAdmin, not_allowed
from jobqueue.engine.health import FAILING_SECONDS, TaskFailures
from jobqueue.engine.rollups import MINUTE
from jobqueue.engine.statistics import Count, Line, Series, throughput
from jobqueue.engine.status import leases_left
from jobqueue.exceptions import JobQueueError
from jobqueue.filters import Filter, term
from jobqueue.filters.query import state_condition
from jobqueue.limits import queue_key
from jobqueue.models import Job, Worker
from jobqueue.states import CHARGED, LIVE, Outcome, State

HOUR_SECONDS = 3_600.0
MAX_COUNTED = 2_000
COUNTED = (LIVE | {State.DEAD}) - {State.READY}
MAX_WORKERS = 50


class PauseForm(forms.Form):
    """Why a queue is paused."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("Shown to everybody who wonders why nothing runs."),
    )


class QueueAdmin(OperationsAdmin):
    """Named lanes."""

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        ours = [
            path("<str:name>/turn/<slug:turn>/", wrap(self.turn_view), name="jobqueue_queue_turn")
        ]
        return ours + super().get_urls()

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return all queues; ?paused=1 only those that are paused."""
        self._require_view(request)
        running = _running()
        hour = _last_hour()
        only_paused = request.GET.get("paused") == "1"
        queues = [
            self._line(queue, running, hour) | self._turn_of(request, queue, number)
            for number, queue in enumerate(control.queues(home.alias()))
            if queue.paused or not only_paused
        ]
        context = {
            "title": _("Queues"),
            "queues": queues,
            "only_paused": only_paused,
            "may_turn": self.may(request, "pause") or self.may(request, "resume"),
            "next": request.get_full_path(),
        }
        return self.page(request, "queue/list.html", context | (extra_context or {}))

    def _line(
        self, queue: control.QueueStatus, running: Mapping[str, Any], hour: Mapping[str, Line]
    ) -> dict[str, Any]:
        line = hour.get(queue.name) or Line(queue.name, ())
        failing = _failing(line)
        state = "paused" if queue.paused else "failing" if failing else "active"
        return {
            "name": marks.text(queue.name, 100),
            "url": self.url("change", quote(queue.name)),
            "badge": marks.badge(state),
            "paused_ago": marks.since(queue.paused_at),
            "paused_by": marks.text(queue.paused_by, 60) if queue.paused else "",
            "paused_reason": marks.text(queue.paused_reason, 255) if queue.paused_reason else "",
            "ready": queue.ready,
            "ready_url": self._jobs_url(queue.name, "ready"),
            "running": marks.number(running.get(queue.name, 0)),
            "running_url": self._jobs_url(queue.name, "running"),
            "oldest": marks.span(queue.oldest_ready_seconds),
            "failing": failing,
            "ended": marks.number(sum(line.counts)),
            "failed": marks.number(sum(line.failed)) if any(line.failed) else "",
            "chart": charts.sparkline(line.counts, line.failed),
        }

    def _turn_of(
        self, request: HttpRequest, queue: control.QueueStatus, number: int = 0
    ) -> dict[str, Any]:
        """Return what pauses or resumes a queue: an address, "" where the user may not, a form."""
        turn = "resume" if queue.paused else "pause"
        url = self.url("turn", quote(queue.name), turn) if self.may(request, turn) else ""
        return {
            "paused": queue.paused,
            "turn_url": url,
            "form": PauseForm(auto_id=f"pause-{number}-%s"),
        }

    def _jobs_url(self, name: str, state: str) -> str:
        chosen = Filter((term("state", state), term("queue", name)))
        return f"{self.url_of('job', 'changelist')}?{urlencode({'q': str(chosen)})}"

    # --- one queue ------------------------------------------------------------------------------

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Return the page of one queue, also of one that has no row."""
        self._require_view(request)
        name = unquote(object_id)
        queue = _named(name)
        if queue is None:
            raise Http404
        states = _states(name)
        hour = throughput(HOUR_SECONDS, queue=name, backend=home.alias(), now=timezone.now())
        ended, failed = _by_step(hour), _by_step(hour, CHARGED)
        running = {name: states.pop(State.RUNNING.value)}
        context = {
            "title": marks.visible(marks.cut(name, 100)),
            "queue": self._line(queue, running, {name: Line(name, ended, failed)}),
            **self._turn_of(request, queue),
            "paused_at": marks.moment(queue.paused_at),
            "counts": [
                (marks.badge(state), count, self._jobs_url(name, state))
                for state, count in states.items()
            ],
            "limited": queue.limited,
            "limit_url": self.url_of("limit", "change", quote(queue_key(name))),
            "workers": [
                (self.url_of("worker", "change", worker.pk), marks.text(worker, 100))
                for worker in _workers(name)
            ],
            "chart": charts.bars(
                hour.starts,
                ended,
                _("Attempts ended in the last hour"),
                step_seconds=hour.step_seconds,
                failed=failed,
            ),
        }
        return self.page(request, "queue/detail.html", context)

    def turn_view(self, request: HttpRequest, name: str, turn: str) -> HttpResponse:
        """Pause or resume a queue."""
        if turn not in ("pause", "resume"):
            raise Http404
        self.require(request, turn)
        if request.method != "POST":
            return not_allowed("POST")
        name = unquote(name)
        try:
            outcome = _turn(request, name, turn)
        except JobQueueError as error:
            self.tell_refusal(request, error)
        else:
            if outcome.changed:
                self.log(request, [(name, name)], turn)
            self.tell(request, turn, outcome)
        return HttpResponseRedirect(self.back(request, self.url("change", quote(name))))

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            self.require(request, "pause")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) or self.may(request, permissions.VIEW)


def _turn(request: HttpRequest, name: str, turn: str) -> control.Outcome:
    actor, alias = home.actor(request), home.alias()
    if turn == "resume":
        return control.resume(name, actor, backend=alias)
    reason = request.POST.get("reason", "").replace("\x00", "").strip()
    return control.pause(name, actor, reason, backend=alias)


def _named(name: str) -> control.QueueStatus | None:
    return next((queue for queue in control.queues(home.alias()) if queue.name == name), None)


def _running() -> dict[str, int]:
    jobs = Job.objects.using(home.database()).filter(state=State.RUNNING.value)
    return dict(jobs.order_by().values_list("queue").annotate(count=Counted("id")))


def _last_hour() -> dict[str, Line]:
    series = throughput(HOUR_SECONDS, "queue", backend=home.alias())
    return {line.name: line for line in series.lines}


def _failing(line: Line) -> str:
    """Return how many attempts failed in the last minutes, if more often than not."""
    steps = int(FAILING_SECONDS / MINUTE) + 1  # the last of them is open, as in task_failures
    found = TaskFailures(line.name, sum(line.failed[-steps:]), sum(line.counts[-steps:]))
    if not found.is_failing:
        return ""
    return _("%(failed)s of %(attempts)s attempts failed in the last ten minutes") % {
        "failed": f"{found.failed:,}",
        "attempts": f"{found.attempts:,}",
    }


def _by_step(series: Series, outcomes: Iterable[str] = tuple(Outcome)) -> list[int]:
    """Return how many attempts ended in each step, in these ways."""
    lines = [line.counts for line in series.lines if line.name in set(outcomes)]
    return [sum(counts) for counts in zip(*lines, strict=True)] or [0] * len(series.starts)


def _states(name: str) -> dict[str, Count]:
    """Return how many jobs of a queue are in each state but ready, counted up to a limit in all.

    Sorted by the text of ids, so that the indexes of the states are read and not the history.
    """
    jobs = Job.objects.using(home.database()).filter(state_condition(COUNTED), queue=name)
    found = list(jobs.order_by(Cast("id", CharField())).values_list("state")[: MAX_COUNTED + 1])
    counts = Counter(state for (state,) in found)
    relation: Any = "gte" if len(found) > MAX_COUNTED else "eq"
    return {
        state.value: Count(counts[state.value], relation) for state in State if state in COUNTED
    }


def _workers(name: str) -> list[Worker]:
    """Return the workers that live and take jobs from a queue: those that drain take none."""
    rows = Worker.objects.using(home.database()).filter(dead=False, draining=False, kind="worker")
    living = {worker for worker, left in leases_left(home.alias()).items() if left >= 0}
    rows = rows.defer("tasks").order_by("host", "name")[:1_000]
    serving = [worker for worker in rows if not worker.queues or name in worker.queues]
    return [worker for worker in serving if worker.pk in living][:MAX_WORKERS]
