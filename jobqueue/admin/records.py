"""What is only looked at: actions, attempts and tags, a page at a time."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue import permissions
from jobqueue.admin import marks, words
from jobqueue.admin.base import OperationsAdmin
from jobqueue.admin.lists import KeysetChangeList
from jobqueue.admin.record_filters import (
    ActorSearch,
    AttemptPeriod,
    ErrorClassFilter,
    OutcomeFilter,
    SurfaceFilter,
    VerbFilter,
    WorkerFilter,
)
from jobqueue.admin.tracebacks import own_frames
from jobqueue.disclosure import READ_AHEAD, shown_error
from jobqueue.filters import shown_filter
from jobqueue.models import Attempt
from jobqueue.redaction import redact_text

MAX_MESSAGE = 4_000


class RecordAdmin(OperationsAdmin):
    """Rows of history, listed by their keys."""

    refused = None

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        return KeysetChangeList

    def job_link(self, job_id: Any) -> Any:
        """Return a link to a job's page."""
        if job_id is None:
            return marks.NOTHING
        return marks.link(self.url_of("job", "change", job_id), marks.short_id(job_id))

    def gone(self, request: HttpRequest) -> HttpResponse:
        """Send whoever asks for a row that is not there to the list."""
        self.message_user(request, _("There is no such row. It may have been pruned."))
        return HttpResponseRedirect(self.url("changelist"))


class ActionAdmin(RecordAdmin):
    """What operators did."""

    list_display = [
        "at_column",
        "verb_column",
        "actor_column",
        "surface_column",
        "target_column",
        "count_column",
    ]
    list_filter = [VerbFilter, SurfaceFilter]
    search_fields = ["actor"]
    search_help_text = gettext_lazy("The whole name of whoever did it.")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return ActorSearch.matching(queryset, search_term), False

    @admin.display(description=gettext_lazy("when"))
    def at_column(self, action: Any) -> Any:
        return marks.moment(action.at)

    @admin.display(description=gettext_lazy("what"))
    def verb_column(self, action: Any) -> Any:
        return words.verb(action.verb)

    @admin.display(description=gettext_lazy("who"))
    def actor_column(self, action: Any) -> Any:
        return marks.text(action.actor, 60)

    @admin.display(description=gettext_lazy("through"))
    def surface_column(self, action: Any) -> Any:
        return words.surface(action.surface)

    @admin.display(description=gettext_lazy("how many"))
    def count_column(self, action: Any) -> Any:
        return marks.number(action.count)

    @admin.display(description=gettext_lazy("target"))
    def target_column(self, action: Any) -> Any:
        return self.job_link(action.job_id) if action.job_id else marks.text(action.target, 80)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            self.require(request, permissions.VIEW)
        action = self.get_object(request, object_id)
        if action is None:
            return self.gone(request)
        told = action.detail
        if isinstance(told, dict) and isinstance(told.get("filter"), str):
            with_payload = self.may(request, permissions.VIEW_PAYLOAD)
            told = told | {"filter": shown_filter(told["filter"], with_payload)}
        detail = json.dumps(told, ensure_ascii=False, indent=2, default=str)
        facts = [
            (_("When"), marks.moment(action.at)),
            (_("Who"), marks.text(action.actor)),
            (_("Through"), words.surface(action.surface)),
            (_("What"), words.verb(action.verb)),
            (_("Job"), self.job_link(action.job_id)),
            (_("Target"), marks.text(action.target)),
            (_("How many"), marks.number(action.count)),
        ]
        text = marks.visible(detail[:MAX_MESSAGE]) if action.detail else ""
        context = {"title": words.verb(action.verb), "facts": facts, "detail": text}
        return self.page(request, "record.html", context)


class AttemptAdmin(RecordAdmin):
    """Attempts: reached from a job, a worker or an error, not from the index."""

    list_display = [
        "finished_column",
        "outcome_column",
        "job_column",
        "error_column",
        "took_column",
    ]
    list_filter = [OutcomeFilter, AttemptPeriod, ErrorClassFilter, WorkerFilter]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, permissions.VIEW)

    def get_queryset(self, request: HttpRequest) -> Any:
        rows: Any = super().get_queryset(request).defer("traceback", "error_message")
        return rows.annotate(error_head=Left("error_message", MAX_MESSAGE + READ_AHEAD))

    @admin.display(description=gettext_lazy("ended"))
    def finished_column(self, attempt: Any) -> Any:
        return marks.moment(attempt.finished_at)

    @admin.display(description=gettext_lazy("outcome"))
    def outcome_column(self, attempt: Any) -> Any:
        return marks.badge(attempt.outcome)

    @admin.display(description=gettext_lazy("error"))
    def error_column(self, attempt: Any) -> Any:
        return marks.last_error(attempt.error_class, _message(attempt, attempt.with_payload))

    @admin.display(description=gettext_lazy("ran for"))
    def took_column(self, attempt: Any) -> Any:
        return marks.span((attempt.finished_at - attempt.started_at).total_seconds())

    @admin.display(description=gettext_lazy("job"))
    def job_column(self, attempt: Any) -> Any:
        return marks.lines([marks.text(attempt.task, 100), self.job_link(attempt.job_id)])

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        self.require(request, permissions.VIEW)
        attempt: Any = self.get_object(request, object_id)
        if attempt is None:
            return self.gone(request)
        with_payload = self.may(request, permissions.VIEW_PAYLOAD)
        return self.page(request, "record.html", _attempt_context(self, attempt, with_payload))


def _message(attempt: Any, with_payload: bool) -> str:
    return shown_error(
        attempt.error_head, task=attempt.task, may_see_payload=with_payload, most=MAX_MESSAGE
    )


def _attempt_context(site: RecordAdmin, attempt: Attempt, with_payload: bool) -> dict[str, Any]:
    message = _message(attempt, with_payload)
    traceback = attempt.traceback[:65_536] if with_payload else ""
    traceback = redact_text(traceback, task=attempt.task, part="error")
    took = (attempt.finished_at - attempt.started_at).total_seconds()
    facts = [
        (_("Outcome"), marks.badge(attempt.outcome)),
        (_("Job"), site.job_link(attempt.job_id)),
        (_("Task"), marks.text(attempt.task)),
        (_("Queue"), marks.text(attempt.queue)),
        (_("Worker"), marks.link(site.url_of("worker", "change", attempt.worker), attempt.worker)),
        (_("Due"), marks.moment(attempt.due_at)),
        (_("Started"), marks.moment(attempt.started_at)),
        (_("Ended"), marks.moment(attempt.finished_at)),
        (_("Ran for"), marks.span(took)),
        (_("Charged"), _("yes") if attempt.charged else _("no")),
        (_("Fence"), marks.number(attempt.fence)),
        (_("Error"), marks.last_error(attempt.error_class, message)),
    ]
    return {
        "title": _("Attempt %(number)s") % {"number": attempt.number},
        "facts": facts,
        "detail": marks.visible(message if with_payload else ""),
        "frames": own_frames(traceback),
        "traceback": marks.visible(traceback),
    }


class TagAdmin(RecordAdmin):
    """Tags, by which the jobs of any object are found."""

    list_display = ["tag_column", "job_column"]
    search_fields = ["tag"]
    search_help_text = gettext_lazy("A whole tag, such as order:42.")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, permissions.VIEW)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        return (queryset.filter(tag=term) if term else queryset), False

    @admin.display(description=gettext_lazy("tag"))
    def tag_column(self, row: Any) -> Any:
        return marks.text(row.tag)

    @admin.display(description=gettext_lazy("job"))
    def job_column(self, row: Any) -> Any:
        return self.job_link(row.job_id)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        self.require(request, permissions.VIEW)
        row: Any = self.get_object(request, object_id)
        if row is None:
            return self.gone(request)
        return HttpResponseRedirect(self.url_of("job", "change", row.job_id))
