"""Schedules: what ticks when, what came of it, and changing, running, switching and trying them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import admin, messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue import control, permissions
from jobqueue.admin import home, marks, words
from jobqueue.admin.base import OperationsAdmin, allowed_to, not_allowed
from jobqueue.admin.payloads import shown_document
from jobqueue.admin.schedule_forms import ScheduleForm, initial_of
from jobqueue.admin.schedule_lists import (
    EnabledFilter,
    ScheduleChangeList,
    ScheduleColumns,
    missed_text,
    overlap_text,
    state_badge,
)
from jobqueue.declarations import declaration, default_zone
from jobqueue.disclosure import shown_error
from jobqueue.engine.schedule_status import history
from jobqueue.exceptions import InvalidSchedule, JobQueueError
from jobqueue.models import Job, Schedule
from jobqueue.models.schedule import CODE, DATABASE
from jobqueue.redaction import redact
from jobqueue.states import LIVE

PREVIEWED = 5
MAX_LIVE = 20
RUNNING = gettext_lazy(
    "A job is made now, beside the plan: the next tick comes at its time all the same. What the "
    "last run has done can happen twice."
)

AT_ONCE = {
    "enable": gettext_lazy("At once: it ticks from the next tick on."),
    "disable": gettext_lazy("At once: it makes no job until it is enabled."),
}
"""What a button does that does not ask."""


def _switch(verb: str, label: Any, question: Any = "") -> Callable[..., Any]:
    @admin.action(permissions=[verb], description=label)
    def act(modeladmin: ScheduleAdmin, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        if question:
            shown = {row.pk: marks.text(row.name) for row in queryset}
            if asked := modeladmin.confirm(request, verb, str(question), shown):
                return asked
        for name in queryset.values_list("name", flat=True):
            modeladmin.turn(request, name, verb)
        return None

    act.__name__ = verb
    return act


TURNS = {
    "enable": "enable_schedule",
    "disable": "disable_schedule",
    "run": "run_schedule",
    "delete": "delete_schedule",
}


class ScheduleAdmin(ScheduleColumns, OperationsAdmin):
    """Recurring plans."""

    list_display = [
        "name_column",
        "words_column",
        "state_column",
        "last_column",
        "next_column",
        "policy_column",
    ]
    list_filter = [EnabledFilter]
    search_fields = ["name", "task"]
    ordering = ["name"]
    actions = [
        _switch("enable_schedule", gettext_lazy("Enable")),
        _switch("disable_schedule", gettext_lazy("Disable")),
        _switch("run_schedule", gettext_lazy("Run now…"), RUNNING),
    ]
    has_enable_schedule_permission = allowed_to("enable_schedule")
    has_disable_schedule_permission = allowed_to("disable_schedule")
    has_run_schedule_permission = allowed_to("run_schedule")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may(request, "create_schedule")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ScheduleChangeList]:
        return ScheduleChangeList

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        turn = path(
            "<int:number>/turn/<slug:turn>/",
            wrap(self.turn_view),
            name="jobqueue_schedule_turn",
        )
        return [turn, *super().get_urls()]

    # --- one schedule ---------------------------------------------------------------------------

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return the form of a new schedule; Preview only shows what it would do."""
        self._require(request, "create_schedule")
        form = ScheduleForm(request.POST or None, initial={"time_zone": default_zone()})
        if request.method == "POST" and form.is_valid() and "_preview" not in request.POST:
            row = self._save(request, form, None)
            if row is not None:
                return HttpResponseRedirect(self.url("change", row.pk))
        return self._form_page(request, form, None)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Return the page of a schedule, with its form if it may be changed here."""
        if not self.has_view_permission(request):
            self._require(request, "update_schedule")
        row: Any = self.get_object(request, object_id)
        if row is None:
            self.message_user(request, _("There is no such schedule."), messages.WARNING)
            return HttpResponseRedirect(self.url("changelist"))
        form = self._form_of(request, row)
        if request.method == "POST":
            self._require(request, "update_schedule")
            saves = form is not None and form.is_valid() and "_preview" not in request.POST
            if saves and self._save(request, form, row) is not None:
                return HttpResponseRedirect(self.url("change", row.pk))
        return self._form_page(request, form, row)

    def _form_of(self, request: HttpRequest, row: Schedule) -> ScheduleForm | None:
        """Return the form; None for whoever may not change it, or if the code decides.

        Arguments that hold what is hidden, or that may not be seen, are left as they are.
        """
        if row.source == CODE or not self.may(request, "update_schedule"):
            return None
        given = redact(row.arguments, task=row.task, part="arguments")
        seen = self.may(request, permissions.VIEW_PAYLOAD) and given == row.arguments
        data = request.POST if request.method == "POST" else None
        return ScheduleForm(data, initial=initial_of(row), with_arguments=seen)

    def _save(self, request: HttpRequest, form: Any, row: Schedule | None) -> Any:
        """Return the schedule as it is stored; None, with errors in the form, if it is refused."""
        actor, alias = home.actor(request), home.alias()
        given = form.keywords()
        try:
            if row is None:
                saved = control.create_schedule(
                    form.cleaned_data["name"], actor, backend=alias, **given
                )
            else:
                version = form.cleaned_data.get("version")
                saved = control.update_schedule(
                    row.name, actor, version=version, backend=alias, **given
                )
        except InvalidSchedule as error:
            form.refuse(error)
            return None
        except JobQueueError as error:
            form.add_error(None, str(error))
            return None
        message = _("Added.") if row is None else _("Changed. What is new counts from now.")
        self.message_user(request, message, messages.SUCCESS)
        self.log(request, [(saved.pk, saved.name)], "create" if row is None else "update")
        return saved

    def _form_page(
        self, request: HttpRequest, form: ScheduleForm | None, row: Schedule | None
    ) -> HttpResponse:
        if row is not None and form is not None:
            form.fields["name"].disabled = True
        status = None
        if row is not None:
            status = next(iter(control.schedules(home.alias(), name=row.name)), None)
        context = {
            "title": marks.visible(row.name) if row else _("Add schedule"),
            "row": row,
            "form": form,
            "status": status,
            "badge": state_badge(status) if status else "",
            "facts": self._facts(request, row, status) if row else [],
            "ticks": self._ticks(form, status),
            "history": _history(row) if row else [],
            "live": _live(row) if row else [],
            "error": marks.visible(self._error(request, row)) if row else "",
            "is_code": bool(row and row.source == CODE),
            "buttons": self._buttons(request, row) if row else [],
        }
        return self.page(request, "schedule/form.html", context)

    def _error(self, request: HttpRequest, row: Schedule) -> str:
        with_payload = self.may(request, permissions.VIEW_PAYLOAD)
        return shown_error(row.error, task=row.task, may_see_payload=with_payload)

    def _ticks(self, form: ScheduleForm | None, status: Any) -> list[dict[str, Any]]:
        """Return the next ticks: of what stands in the form, else of the schedule as it is."""
        ticks = status.next_ticks if status else []
        if form is not None and form.is_bound and form.is_valid():
            try:
                given = {"args": [], "kwargs": {}, **form.keywords()}
                one = declaration(form.cleaned_data["name"], given)
                ticks = control.preview_schedule(one, PREVIEWED, backend=home.alias())
            except InvalidSchedule as error:
                form.refuse(error)
                ticks = []
        return [
            {
                "local": f"{tick.local:%Y-%m-%d %H:%M:%S} {tick.local.tzname()}",
                "utc": f"{tick.at:%Y-%m-%d %H:%M:%S}",
                "note": tick.note,
            }
            for tick in ticks
        ]

    def _facts(self, request: HttpRequest, row: Schedule, status: Any) -> list[tuple[str, Any]]:
        facts = [
            (_("Task"), marks.text(row.task)),
            (_("Plan"), marks.text(_plan(row))),
            (_("Time zone"), marks.text(row.time_zone)),
            (_("Declared in"), _("code") if row.source == CODE else _("the database")),
            (_("Queue"), marks.text(row.queue_name) if row.queue_name else _("the task's own")),
            (_("Its jobs run"), overlap_text(row)),
            (_("After a stop of all schedulers"), missed_text(row)),
            (_("Last tick"), marks.moment(status.last.tick if status and status.last else None)),
        ]
        if self.may(request, permissions.VIEW_PAYLOAD):
            text = json.dumps(row.arguments, default=str)
            shown = shown_document(text, len(text), task=row.task, part="arguments")
            facts.append((_("Arguments"), marks.code(shown.text, 4_000)))
        return facts

    # --- buttons --------------------------------------------------------------------------------

    def _buttons(self, request: HttpRequest, row: Schedule) -> list[dict[str, Any]]:
        """Return what may be pressed; meaning: what running means, said before it is done."""
        turns: Sequence[str] = ("disable", "run") if row.enabled else ("enable", "run")
        if row.source == DATABASE or row.undeclared_at is not None:
            turns = (*turns, "delete")
        return [
            {
                "url": self.url("turn", row.pk, turn),
                "label": words.verb(TURNS[turn]),
                "meaning": RUNNING if turn == "run" else "",
                "note": AT_ONCE.get(turn, ""),
                "asks": turn in ("run", "delete"),
                "tone": "jq-bad" if turn == "delete" else "",
            }
            for turn in turns
            if self.may(request, TURNS[turn])
        ]

    def turn_view(self, request: HttpRequest, number: int, turn: str) -> HttpResponse:
        """Enable, disable, run or delete a schedule; deleting asks once more."""
        if turn not in TURNS:
            raise Http404
        self._require(request, TURNS[turn])
        if request.method != "POST":
            return not_allowed("POST")
        row: Any = self.get_object(request, str(number))
        if row is None:
            return HttpResponseRedirect(self.url("changelist"))
        if turn == "delete" and request.POST.get("confirmed") != "1":
            context = {"title": _("Delete schedule"), "row": row, "url": request.path}
            return self.page(request, "schedule/delete.html", context)
        self.turn(request, row.name, TURNS[turn])
        there = self.get_queryset(request).filter(pk=number).exists()
        return HttpResponseRedirect(self.url("change", number) if there else self.url("changelist"))

    def turn(self, request: HttpRequest, name: str, verb: str) -> None:
        """Do it, and say what came of it."""
        key = self.get_queryset(request).filter(name=name).values_list("pk", flat=True).first()
        try:
            act = getattr(control, verb)
            outcome = act(name, home.actor(request), backend=home.alias())
        except JobQueueError as error:
            self.tell_refusal(request, error)
            return
        if outcome.changed:
            self.log(request, [(key, name)], verb)
        self.tell(request, verb, outcome)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Send to the page of the schedule, which has the button."""
        return HttpResponseRedirect(self.url("change", object_id))

    def _require(self, request: HttpRequest, verb: str) -> None:
        if not self.may(request, verb):
            self.require(request, verb)


def _plan(row: Schedule) -> str:
    try:
        return row.as_plan().words()
    except InvalidSchedule as error:
        return str(error)


def _live(row: Schedule) -> list[dict[str, Any]]:
    """Return its newest jobs that have not ended; those of no tick were made by hand."""
    jobs = Job.objects.using(row._state.db).filter(schedule=row.name, state__in=sorted(LIVE))
    rows = jobs.order_by("-enqueued_at").only("state", "enqueued_at", "tick")
    return [
        {
            "id": job.pk,
            "badge": marks.badge(job.state),
            "enqueued": marks.moment(job.enqueued_at),
            "why": _("its plan") if job.tick else _("hand"),
        }
        for job in rows[:MAX_LIVE]
    ]


def _history(row: Schedule) -> list[dict[str, Any]]:
    return [
        {
            "tick": marks.moment(past.tick),
            "at": marks.moment(past.at),
            "outcome": marks.badge(past.outcome),
            "state": marks.badge(past.job_state) if past.job_state else "",
            "missed": past.missed,
            "job_id": past.job_id,
        }
        for past in history(row)
    ]
