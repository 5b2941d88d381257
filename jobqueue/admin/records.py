"""What is only looked at: actions, attempts and tags, a page at a time."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue import permissions
from jobqueue.admin import marks, words
from jobqueue.admin.base import OperationsAdmin, field_or_none
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
from jobqueue.filters import shown_filter, term
from jobqueue.models import Attempt, BulkOperation, BulkState, Job, Worker
from jobqueue.models.fields import DocumentText
from jobqueue.redaction import redact_text

MAX_MESSAGE = 4_000
BULK_TARGET = re.compile(r"bulk operation (\d{1,18})")


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


class ActionChangeList(KeysetChangeList):
    """A page of actions; those that began a bulk operation, with how far that is."""

    def rows(self, keys: list[Any]) -> list[Any]:
        found = super().rows(keys)
        numbers = {row.pk: BULK_TARGET.fullmatch(row.target) for row in found}
        wanted = {int(number[1]) for number in numbers.values() if number}
        rows = BulkOperation.objects.using(self.root_queryset.db).filter(pk__in=wanted)
        named = rows.only("action", "state", "total", "total_is_capped") if wanted else ()
        begun = {operation.action: operation for operation in named}
        for row in found:
            row.operation = begun.get(row.pk)
        return found


class ActionAdmin(RecordAdmin):
    """What operators did."""

    list_display = [
        "at_column",
        "verb_column",
        "actor_column",
        "surface_column",
        "target_column",
        "reason_column",
        "count_column",
    ]
    list_filter = [VerbFilter, SurfaceFilter]
    search_fields = ["actor"]
    search_help_text = gettext_lazy("The whole name of whoever did it.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave what may be a thousand ids to the page of one action."""
        named = {name: DocumentText("detail", name) for name in ("reason", "worker")}
        named["bulk_reason"] = DocumentText("detail", "parameters", "reason")
        rows: QuerySet[Any] = super().get_queryset(request).defer("detail").annotate(**named)
        return rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return ActorSearch.matching(queryset, search_term), False

    @admin.display(description=gettext_lazy("when"))
    def at_column(self, action: Any) -> Any:
        return marks.moment(action.at)

    @admin.display(description=gettext_lazy("action"))
    def verb_column(self, action: Any) -> Any:
        return words.verb(action.verb)

    @admin.display(description=gettext_lazy("by"))
    def actor_column(self, action: Any) -> Any:
        return marks.text(action.actor, 60)

    @admin.display(description=gettext_lazy("from"))
    def surface_column(self, action: Any) -> Any:
        return words.surface(action.surface)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        return ActionChangeList

    @admin.display(description=gettext_lazy("how many"))
    def count_column(self, action: Any) -> Any:
        """Return how many jobs were changed; of how many, where an operation has not finished."""
        operation = action.operation
        if operation is None or operation.state == BulkState.FINISHED:
            return marks.number(action.count)
        return _("%(count)s of %(total)s, %(state)s") % {
            "count": marks.number(action.count),
            "total": f"{operation.total:,}{'+' * operation.total_is_capped}",
            "state": words.state(operation.state),
        }

    @admin.display(description=gettext_lazy("target"))
    def target_column(self, action: Any) -> Any:
        job = self.job_link(action.job_id) if action.job_id else ""
        if action.target == str(action.job_id):
            return job
        url, shown = self._target_url(action), marks.dotted(action.target, 80)
        return marks.lines([marks.link(url, shown) if url else shown, job])

    def _target_url(self, action: Any) -> str:
        """Return the page of what was acted on, "" if it has none."""
        verb, target = action.verb, action.target
        if verb in ("pause", "resume"):
            return self.url_of("queue", "change", quote(target))
        if verb.endswith("_limit"):
            return self.url_of("limit", "change", quote(target))
        if verb.endswith("_schedule"):
            return f"{self.url_of('schedule', 'changelist')}?{urlencode({'q': target})}"
        if operation := BULK_TARGET.fullmatch(target):
            return self.url_of("bulkoperation", "change", operation[1])
        if verb == "drain" and (worker := field_or_none(Worker, action.worker)):
            return self.url_of("worker", "change", worker)
        return ""

    @admin.display(description=gettext_lazy("why"))
    def reason_column(self, action: Any) -> Any:
        reason = action.reason or action.bulk_reason
        return marks.text(reason) if reason else marks.NOTHING

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
            (_("By"), marks.text(action.actor)),
            (_("From"), words.surface(action.surface)),
            (_("Action"), words.verb(action.verb)),
            (_("Target"), self.target_column(action)),
            (_("Why"), self.reason_column(action)),
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
        "worker_column",
    ]
    list_filter = [OutcomeFilter, AttemptPeriod, ErrorClassFilter, WorkerFilter]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, permissions.VIEW)

    def get_queryset(self, request: HttpRequest) -> Any:
        rows: Any = super().get_queryset(request).defer("traceback", "error_message")
        worker = Worker.objects.filter(pk=OuterRef("worker"))
        return rows.annotate(
            error_head=Left("error_message", MAX_MESSAGE + READ_AHEAD),
            worker_name=Subquery(worker.values("name")[:1]),
            worker_host=Subquery(worker.values("host")[:1]),
        )

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

    @admin.display(description=gettext_lazy("worker"))
    def worker_column(self, attempt: Any) -> Any:
        """Return the worker by its name; by its identity once its row has been pruned."""
        if attempt.worker_name is None:
            return marks.short_id(attempt.worker)
        shown = marks.lines([marks.text(attempt.worker_name, 60), marks.text(attempt.worker_host)])
        return marks.link(self.url_of("worker", "change", attempt.worker), shown)

    @admin.display(description=gettext_lazy("job"))
    def job_column(self, attempt: Any) -> Any:
        return marks.lines([marks.dotted(attempt.task, 100), self.job_link(attempt.job_id)])

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


def _attempt_context(site: AttemptAdmin, attempt: Attempt, with_payload: bool) -> dict[str, Any]:
    message = _message(attempt, with_payload)
    traceback = attempt.traceback[:65_536] if with_payload else ""
    traceback = redact_text(traceback, task=attempt.task, part="error")
    took = (attempt.finished_at - attempt.started_at).total_seconds()
    facts = [
        (_("Outcome"), marks.badge(attempt.outcome)),
        (_("Job"), site.job_link(attempt.job_id)),
        (_("Task"), marks.link(_jobs_url(site, "task", attempt.task), marks.text(attempt.task))),
        (
            _("Queue"),
            marks.link(_jobs_url(site, "queue", attempt.queue), marks.text(attempt.queue)),
        ),
        (_("Worker"), site.worker_column(attempt)),
        (_("Due"), marks.moment(attempt.due_at)),
        (_("Started"), marks.moment(attempt.started_at)),
        (_("Ended"), marks.moment(attempt.finished_at)),
        (_("Ran for"), marks.span(took)),
        (_("Counts as a failure"), _("yes") if attempt.charged else _("no")),
        (_("Fence"), marks.explained(marks.number(attempt.fence), words.NOTES["fence"])),
        (_("Error"), marks.code(attempt.error_class) if attempt.error_class else marks.NOTHING),
    ]
    return {
        "title": _("Attempt %(number)s") % {"number": attempt.number},
        "facts": facts,
        "detail": marks.visible(message if with_payload else ""),
        "frames": own_frames(traceback),
        "traceback": marks.visible(traceback),
    }


def _jobs_url(site: RecordAdmin, key: str, value: str) -> str:
    return site.jobs_url(term(key, value), term("state", "any"))


class TagChangeList(KeysetChangeList):
    """A page of tags, each with its job."""

    shows_times = False

    def rows(self, keys: list[Any]) -> list[Any]:
        found = super().rows(keys)
        jobs = Job.objects.using(self.root_queryset.db).only("id", "task", "state")
        named = jobs.in_bulk([row.job_id for row in found]) if found else {}
        for row in found:
            row.job = named.get(row.job_id)
        return found


class TagAdmin(RecordAdmin):
    """Tags, by which the jobs of any object are found."""

    list_display = ["tag_column", "job_column", "task_column", "state_column"]
    list_display_links = None
    search_fields = ["tag"]
    search_help_text = gettext_lazy("A whole tag, such as order:42.")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, permissions.VIEW)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[TagChangeList]:
        return TagChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        return (queryset.filter(tag=term) if term else queryset), False

    @admin.display(description=gettext_lazy("tag"))
    def tag_column(self, row: Any) -> Any:
        """Return the tag, as a link to all of its jobs."""
        return marks.link(_jobs_url(self, "tag", row.tag), marks.text(row.tag))

    @admin.display(description=gettext_lazy("job"))
    def job_column(self, row: Any) -> Any:
        return self.job_link(row.job_id)

    @admin.display(description=gettext_lazy("task"))
    def task_column(self, row: Any) -> Any:
        return marks.dotted(row.job.task, 100) if row.job else marks.NOTHING

    @admin.display(description=gettext_lazy("state"))
    def state_column(self, row: Any) -> Any:
        return marks.badge(row.job.state) if row.job else marks.NOTHING

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
