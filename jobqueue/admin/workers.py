"""Workers: which processes there are, how busy, how far from their last beat; and draining one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Count, F, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue import control, permissions
from jobqueue.admin import home, marks, words
from jobqueue.admin.base import OperationsAdmin, allowed_to, not_allowed
from jobqueue.admin.job_actions import selected_ids
from jobqueue.admin.lists import NamedChangeList
from jobqueue.engine.job_walks import Span, through_table
from jobqueue.engine.rollup_windows import RATE_MINUTES
from jobqueue.engine.statistics import worker_rates
from jobqueue.engine.status import leases_left
from jobqueue.exceptions import JobQueueError
from jobqueue.models import Attempt, Job, Worker
from jobqueue.states import State

MAX_RUNNING = 50
MAX_ATTEMPTS = 20
MAX_OTHERS = 1_000
LOOKS = 2
DRAINING = gettext_lazy(
    "A drained worker claims nothing more, ends the jobs in hand and exits. Nothing starts another "
    "in its place."
)


class LifeFilter(admin.SimpleListFilter):
    """Those that are not dead by default: the dead are history."""

    title = gettext_lazy("state")
    parameter_name = "life"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("draining", words.state("draining")),
            ("dead", gettext_lazy("dead or stopped")),
            ("any", gettext_lazy("all")),
        ]

    def choices(self, changelist: Any) -> Iterator[Any]:
        found = iter(super().choices(changelist))
        yield {**next(found), "display": gettext_lazy("not dead")}
        yield from found

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value == "any":
            return queryset
        if value == "draining":
            return queryset.filter(dead=False, draining=True)
        return queryset.filter(dead=value == "dead")


class WorkerChangeList(NamedChangeList):
    """A page of workers, with how busy they are."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        workers = list(self.result_list)
        jobs = Job.objects.using(self.root_queryset.db).filter(
            state=State.RUNNING.value, worker__in=[worker.pk for worker in workers]
        )
        busy = dict(jobs.order_by().values_list("worker").annotate(count=Count("id")))
        rates = {rate.worker: rate for rate in worker_rates(backend=home.alias())}
        _read_life(workers)
        for worker in workers:
            worker.busy = busy.get(worker.pk, 0)
            worker.rate = rates.get(worker.pk)
        self.result_list = workers


@admin.action(permissions=["drain_worker"], description=gettext_lazy("Drain…"))
def drain(modeladmin: WorkerAdmin, request: HttpRequest, queryset: Any) -> HttpResponse | None:
    """Drain the ticked workers, once that has been confirmed."""
    shown = {worker.pk: marks.text(worker) for worker in queryset}
    asked = modeladmin.confirm(request, "drain", str(DRAINING), shown)
    if asked is None:
        modeladmin.drain(request, selected_ids(request))
    return asked


class WorkerAdmin(OperationsAdmin):
    """Processes that claim and run jobs, or watch over them."""

    list_display = [
        "name_column",
        "kind",
        "state_column",
        "queues_column",
        "busy_column",
        "beat_column",
        "version_column",
    ]
    list_filter = [LifeFilter]
    actions = [drain]
    ordering = ["dead", "host", "kind", "name", "pid"]
    has_drain_worker_permission = allowed_to("drain_worker")

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request).defer("tasks")
        return rows.annotate(beat_age=Now() - F("heartbeat_at"))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[WorkerChangeList]:
        return WorkerChangeList

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        ours = [path("<uuid:worker>/drain/", wrap(self.drain_view), name="jobqueue_worker_drain")]
        return ours + super().get_urls()

    # --- columns --------------------------------------------------------------------------------

    @admin.display(description=gettext_lazy("worker"))
    def name_column(self, worker: Any) -> Any:
        place = f"{worker.host}:{worker.pid}"
        return marks.lines([marks.text(worker.name, 60), marks.code(place, 60)])

    @admin.display(description=gettext_lazy("state"))
    def state_column(self, worker: Any) -> Any:
        return life_badge(worker)

    @admin.display(description=gettext_lazy("queues"))
    def queues_column(self, worker: Any) -> Any:
        return queues_text(worker)

    @admin.display(
        description=format_lazy(
            gettext_lazy("busy, attempts a minute in the last {minutes} min"), minutes=RATE_MINUTES
        )
    )
    def busy_column(self, worker: Any) -> Any:
        rate = f"{worker.rate.per_minute:.1f}" if worker.rate else marks.NOTHING
        a_minute = _("%(rate)s a minute") % {"rate": rate}
        busy = marks.budget(min(worker.busy, worker.slots), worker.slots)
        ahead = worker.busy - worker.slots
        claimed = _("%(count)s claimed") % {"count": marks.number(ahead)}
        return marks.lines([busy, ahead > 0 and marks.note(claimed), marks.note(a_minute)])

    @admin.display(description=gettext_lazy("last beat, lease left"))
    def beat_column(self, worker: Any) -> Any:
        lease = _("%(span)s left") % {"span": marks.span(worker.lease_left)}
        holds = not worker.dead and worker.lease_left >= 0
        return marks.lines([ago(worker.beat_age), holds and marks.note(lease)])

    @admin.display(description=gettext_lazy("version"))
    def version_column(self, worker: Any) -> Any:
        return marks.text(worker.version, 40)

    # --- one worker -----------------------------------------------------------------------------

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            self.require(request, "drain_worker")
        worker: Any = self.get_object(request, object_id)
        if worker is None:
            text = _("There is no such worker. Rows of dead ones are pruned.")
            self.message_user(request, text)
            return HttpResponseRedirect(self.url("changelist"))
        others = _others(worker)
        _read_life([worker, *others])
        return self.page(request, "worker/detail.html", self._context(request, worker, others))

    def _context(self, request: HttpRequest, worker: Any, others: list[Any]) -> dict[str, Any]:
        sees_jobs = self.may(request, permissions.VIEW)
        versions = sorted({other.version for other in others} - {worker.version})
        can_drain = self.may(request, "drain_worker") and not worker.dead and not worker.draining
        return {
            "title": marks.visible(marks.cut(worker.name, 80)),
            "subtitle": f"{worker.host}:{worker.pid}",
            "worker": worker,
            "badge": life_badge(worker),
            "facts": _facts(worker),
            "other_versions": [marks.text(version, 40) for version in versions],
            "running": _running(worker) if sees_jobs else [],
            "attempts": _attempts(worker) if sees_jobs else [],
            "drain_url": self.url("drain", worker.pk) if can_drain else "",
            "draining": DRAINING,
            "left_alone": _left_alone(worker, others) if can_drain else "",
        }

    def drain_view(self, request: HttpRequest, worker: UUID) -> HttpResponse:
        """Tell one worker to drain."""
        self.require(request, "drain_worker")
        if request.method != "POST":
            return not_allowed("POST")
        self.drain(request, [worker])
        return HttpResponseRedirect(self.back(request, self.url("change", worker)))

    def drain(self, request: HttpRequest, workers: Iterable[UUID]) -> None:
        """Tell workers to drain, and say what came of it."""
        total = control.Outcome("told to drain")
        for worker in workers:
            try:
                outcome = control.drain_worker(worker, home.actor(request), backend=home.alias())
            except JobQueueError as error:
                self.tell_refusal(request, error)
                return
            total += outcome
        self.log_outcome(request, "drain", total)
        self.tell(request, "drain", total)


def _read_life(workers: Iterable[Any]) -> None:
    """Set `lease_left` of workers, by which the overview says who lives, too."""
    left = leases_left(home.alias())
    for worker in workers:
        worker.lease_left = left.get(worker.pk, -1.0)


def life(worker: Any) -> str:
    """Return the word for a worker's state: one that was told to stop has not died."""
    if worker.dead:
        return "stopped" if worker.dead_reason == "stopped" else "dead"
    if worker.lease_left < 0:
        return "expired"
    return "draining" if worker.draining else "alive"


def life_badge(worker: Any) -> Any:
    """Return a worker's state as an icon and a word; a stop, as at deployments, is no warning."""
    name = life(worker)
    return marks.badge("over", words.state(name)) if name == "stopped" else marks.badge(name)


def queues_text(worker: Any) -> Any:
    """Return the queues that a worker serves."""
    named = _names(worker.queues)
    return marks.text(", ".join(named), 80) if named else _("every queue")


def _others(worker: Any) -> list[Any]:
    """Return the worker processes beside this one that are not dead."""
    if worker.kind != "worker":
        return []
    rows = Worker.objects.using(worker._state.db).filter(dead=False, kind="worker")
    return list(rows.exclude(pk=worker.pk).defer("tasks")[:MAX_OTHERS])


def _left_alone(worker: Any, others: list[Any]) -> str:
    """Return what nobody would serve if this worker were drained; "" if others do."""
    served = [_names(other.queues) for other in others if life(other) == "alive"]
    if worker.kind != "worker" or not all(served):
        return ""
    if not served:
        return _("No other worker is alive: until one starts, no job does.")
    if not worker.queues:
        return _("No other worker serves every queue.")
    alone = sorted(set(_names(worker.queues)).difference(*served))
    shown = marks.visible(", ".join(alone))
    return _("No other worker serves: %(queues)s") % {"queues": shown} if alone else ""


def _names(queues: Any) -> list[str]:
    return list(map(str, queues)) if isinstance(queues, list) else [str(queues)]


def ago(age: Any) -> str:
    """Return how long ago something was."""
    return marks.ago(age.total_seconds())


def _facts(worker: Any) -> list[tuple[str, Any]]:
    facts = [
        (_("Identity"), marks.code(worker.pk)),
        (_("Kind"), marks.text(worker.kind)),
        (_("Backend"), marks.explained(marks.text(worker.backend), words.NOTES["backend"])),
        (_("Version"), marks.text(worker.version)),
        (_("Queues"), queues_text(worker)),
        (_("Slots"), marks.explained(marks.number(worker.slots), words.NOTES["slots"])),
        (_("Started"), marks.moment(worker.started_at)),
        (_("Last beat"), ago(worker.beat_age)),
        (_("Lease until"), marks.moment(worker.lease_until)),
        (_("Clock ahead"), marks.span(abs(worker.clock_ahead)) if worker.clock_ahead else ""),
        *_end(worker),
    ]
    return [(name, value) for name, value in facts if value != ""]


def _end(worker: Any) -> list[tuple[str, Any]]:
    if not worker.dead:
        return []
    if life(worker) == "stopped":
        return [(_("Stopped"), marks.moment(worker.dead_at))]
    return [
        (_("Died"), marks.moment(worker.dead_at)),
        (_("Died of"), marks.text(worker.dead_reason) if worker.dead_reason else ""),
    ]


def _running(worker: Any) -> list[dict[str, Any]]:
    jobs = Job.objects.using(worker._state.db).filter(state=State.RUNNING.value, worker=worker.pk)
    jobs = jobs.order_by("claimed_at").annotate(age=Now() - F("claimed_at"))
    return [
        {
            "id": job.pk,
            "task": marks.dotted(job.task, 100),
            "queue": marks.text(job.queue, 60),
            "since": marks.moment(job.claimed_at),
            "age": marks.span(job.age.total_seconds()),  # type: ignore[attr-defined]
            "deadline": marks.moment(job.deadline),
        }
        for job in jobs.only("id", "task", "queue", "claimed_at", "deadline")[:MAX_RUNNING]
    ]


def _attempts(worker: Any) -> list[dict[str, Any]]:
    """Return the newest attempts of a worker, as far as a bounded look back finds them."""
    rows: Any = Attempt.objects.using(worker._state.db)
    walk = through_table(rows, rows.filter(worker=worker.pk), looks=LOOKS)
    walked = walk(Span(limit=MAX_ATTEMPTS))
    found = rows.filter(pk__in=walked.ids).order_by("-pk").defer("traceback", "error_message")
    return [
        {
            "id": attempt.pk,
            "job_id": attempt.job_id,
            "task": marks.dotted(attempt.task, 100),
            "badge": marks.badge(attempt.outcome),
            "ended": marks.moment(attempt.finished_at),
            "error": marks.last_error(attempt.error_class, ""),
        }
        for attempt in found
    ]
