"""Bulk operations: how far they are, what became of the jobs, stopping and resuming them.

Workers carry them out; a page of them only looks. Whoever may do the verb may stop and resume it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from jobqueue import control, permissions
from jobqueue.admin import home, marks, words
from jobqueue.admin.base import not_allowed
from jobqueue.admin.cautions import cautions_of_filter, shown_errors
from jobqueue.admin.lists import KeysetChangeList
from jobqueue.admin.records import RecordAdmin
from jobqueue.disclosure import shown_error
from jobqueue.engine.obstacles import MAX_ERRORS, errors_of, fingerprints
from jobqueue.exceptions import InvalidFilter, JobQueueError
from jobqueue.filters import Filter, parse, shown_filter
from jobqueue.models import Action, BulkOperation, BulkState, ErrorGroup
from jobqueue.permissions import PERMISSION_OF

REFRESH_SECONDS = 5
TURNS = {BulkState.RUNNING: "stop", BulkState.STOPPED: "resume", BulkState.FAILED: "resume"}
"""What may be done to an operation in each of its states."""
MAX_LOCKED = 20


class BulkChangeList(KeysetChangeList):
    """A page of operations, each with the errors that its filter names."""

    def rows(self, keys: list[Any]) -> list[Any]:
        found = super().rows(keys)
        named = {row.pk: fingerprints(_chosen(row))[:MAX_ERRORS] for row in found}
        wanted = {each for of_one in named.values() for each in of_one}
        rows = ErrorGroup.objects.using(self.root_queryset.db).filter(pk__in=wanted)
        classes = dict(rows.values_list("pk", "error_class")) if wanted else {}
        for row in found:
            row.errors = [classes[each] for each in named[row.pk] if each in classes]
        return found


class BulkOperationAdmin(RecordAdmin):
    """One verb for many jobs, carried out in steps."""

    list_display = [
        "verb_column",
        "state_column",
        "seen_column",
        "counts_column",
        "actor_column",
        "began_column",
        "filter_column",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("ids", "left")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BulkChangeList]:
        return BulkChangeList

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        turn = path(
            "<int:number>/turn/<slug:turn>/",
            wrap(self.turn_view),
            name="jobqueue_bulkoperation_turn",
        )
        return [turn, *super().get_urls()]

    # --- columns --------------------------------------------------------------------------------

    @admin.display(description=gettext_lazy("what"))
    def verb_column(self, operation: Any) -> Any:
        return f"{operation.pk}: {words.verb(operation.verb)}"

    @admin.display(description=gettext_lazy("state"))
    def state_column(self, operation: Any) -> Any:
        error = shown_error(operation.error, task="", may_see_payload=operation.with_payload)
        return marks.lines(
            [marks.badge(operation.state), marks.note(marks.text(error, 100)) if error else ""]
        )

    @admin.display(description=gettext_lazy("jobs"))
    def seen_column(self, operation: Any) -> Any:
        return f"{operation.seen:,} / {operation.total:,}{'+' * operation.total_is_capped}"

    @admin.display(description=gettext_lazy("so far"))
    def counts_column(self, operation: Any) -> Any:
        return words.counts(operation.counts) or marks.NOTHING

    @admin.display(description=gettext_lazy("by"))
    def actor_column(self, operation: Any) -> Any:
        return marks.text(operation.actor, 60)

    @admin.display(description=gettext_lazy("began"))
    def began_column(self, operation: Any) -> Any:
        return marks.moment(operation.began_at)

    @admin.display(description=gettext_lazy("filter"))
    def filter_column(self, operation: Any) -> Any:
        text = shown_filter(operation.filter, operation.with_payload)
        if not operation.filter:
            return _("ids")
        errors = map(marks.dotted, operation.errors if operation.with_payload else ())
        return marks.lines([*errors, marks.note(marks.code(text, 120))])

    # --- one operation --------------------------------------------------------------------------

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Return the page of one operation; ?refresh=1 asks the browser to come again."""
        operation = self.get_object(request, object_id)
        if operation is None:
            return self.gone(request)
        may = self._may_turn(request, operation)
        if not self.has_view_permission(request) and not may:
            raise PermissionDenied
        refreshes = request.GET.get("refresh") == "1" and operation.is_running
        with_payload = self.may(request, permissions.VIEW_PAYLOAD)
        chosen = _chosen(operation)
        errors = errors_of(chosen, home.database())
        operation.filter = shown_filter(operation.filter, with_payload)  # neither is saved
        operation.error = shown_error(operation.error, task="", may_see_payload=with_payload)
        context = self._context(operation, may)
        context["refreshes"] = refreshes
        context["errors"] = shown_errors(self, errors) if with_payload else []
        if context["turn"] == "resume":
            context["cautions"] = cautions_of_filter(operation.verb, chosen, errors)
        response = self.page(request, "bulkoperation/detail.html", context)
        if refreshes:
            response["Refresh"] = str(REFRESH_SECONDS)
        return response

    def _context(self, operation: Any, may: bool) -> dict[str, Any]:
        turn = TURNS.get(operation.state, "") if may else ""
        title = _("Bulk operation %(number)s: %(verb)s")
        return {
            "title": title % {"number": operation.pk, "verb": words.verb(operation.verb)},
            "operation": operation,
            "badge": marks.badge(operation.state),
            "percent": None if operation.fraction is None else int(operation.fraction * 100),
            "seen": marks.number(operation.seen),
            "total": f"{operation.total:,}{'+' * operation.total_is_capped}",
            "counts": [(words.done(what), f"{n:,}") for what, n in operation.counts.items()],
            "facts": _facts(operation),
            "locked": [
                (self.url_of("job", "change", UUID(each)), UUID(each))
                for each in operation.left[:MAX_LOCKED]
            ],
            "turn": turn,
            "turn_url": self.url("turn", operation.pk, turn) if turn else "",
            "resume": _resume(operation),
            "stopped_by": _stopped_by(operation),
            "refresh_seconds": REFRESH_SECONDS,
            "error": marks.visible(operation.error),
        }

    def _may_turn(self, request: HttpRequest, operation: BulkOperation) -> bool:
        return operation.verb in PERMISSION_OF and self.may(request, operation.verb)

    def turn_view(self, request: HttpRequest, number: int, turn: str) -> HttpResponse:
        """Stop or resume an operation."""
        if turn not in ("stop", "resume"):
            raise Http404
        operation = self.get_object(request, str(number))
        if operation is None:
            return self.gone(request)
        self.require_turn(request, operation)
        if request.method != "POST":
            return not_allowed("POST")
        act = control.bulk_stop if turn == "stop" else control.bulk_resume
        try:
            act(number, home.actor(request), backend=home.alias())
        except JobQueueError as error:
            self.tell_refusal(request, error)
        else:
            self.log(request, [(number, str(operation))], turn)
            told = (
                _("It stops after the step that it is in.") if turn == "stop" else _("It goes on.")
            )
            self.message_user(request, told)
        return HttpResponseRedirect(self.url("change", number))

    def require_turn(self, request: HttpRequest, operation: BulkOperation) -> None:
        """Raise PermissionDenied unless the user may do the operation's verb."""
        if not self._may_turn(request, operation):
            raise PermissionDenied


def _chosen(operation: Any) -> Filter:
    """Return the filter of an operation; an empty one where it has none, or none that is read."""
    with suppress(InvalidFilter):
        return parse(operation.filter)
    return Filter()


def _resume(operation: Any) -> str:
    """Return what resuming an operation means: for how many jobs, if that is known."""
    left = operation.jobs_left
    if operation.total_is_capped or not left:
        return _("Resume")
    words_of_it = ngettext("Resume: %(count)s job left", "Resume: %(count)s jobs left", left)
    return words_of_it % {"count": f"{left:,}"}


def _stopped_by(operation: Any) -> str:
    """Return what an error means for an operation: it goes on after one, and not after several."""
    if operation.state != BulkState.FAILED:
        return _("The last step failed:")
    told = _("It stopped, because a step failed %(count)s times in a row, at last with:")
    return told % {"count": operation.failures}


def _stop(operation: Any) -> list[tuple[str, Any]]:
    """Return who stopped an operation, and when; Action rows are looked for by their time."""
    if operation.state != BulkState.STOPPED:
        return []
    rows = Action.objects.using(operation._state.db).filter(
        at__gte=operation.began_at, verb="stop bulk", target=f"bulk operation {operation.pk}"
    )
    stop = rows.order_by("-at").first()
    if stop is None:
        return []
    return [(_("Stopped by"), marks.text(stop.actor)), (_("Stopped"), marks.moment(stop.at))]


def _facts(operation: Any) -> list[tuple[str, Any]]:
    surface = str(words.SURFACES.get(operation.surface, operation.surface))
    waits = operation.is_running and operation.wait_until
    facts: list[tuple[str, Any]] = [
        (_("By"), marks.text(operation.actor)),
        (_("From"), surface),
        (_("Filter"), marks.code(operation.filter, 4_000) if operation.filter else ""),
        (_("Began"), marks.moment(operation.began_at)),
        (_("Last step"), marks.moment(operation.stepped_at)),
        (_("Ended"), marks.moment(operation.ended_at) if operation.ended_at else ""),
        (_("Waits until"), marks.moment(operation.wait_until) if waits else ""),
        *_stop(operation),
    ]
    facts += [_parameter(name, value) for name, value in operation.parameters.items()]
    return [(name, value) for name, value in facts if value != ""]


def _parameter(name: str, value: Any) -> tuple[str, Any]:
    if name == "spread":
        return _("Spread over"), marks.span(timedelta(seconds=float(value)).total_seconds())
    if name == "run_at":
        return _("Run at"), marks.moment(datetime.fromisoformat(value))
    labels = {"reason": _("Reason"), "priority": _("Priority"), "queue": _("Queue")}
    return labels.get(name, name), marks.text(value)
