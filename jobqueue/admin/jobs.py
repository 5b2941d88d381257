"""Jobs in the admin: the list, its actions, and the page of one job.

No job is added, edited or deleted by hand: a row that a worker holds must not change under it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue import permissions
from jobqueue.admin import marks
from jobqueue.admin.base import OperationsAdmin
from jobqueue.admin.job_actions import JobActions
from jobqueue.admin.job_filters import (
    ErrorFilter,
    PeriodFilter,
    QueueFilter,
    ScheduleFilter,
    StateFilter,
    TaskFilter,
)
from jobqueue.admin.job_lists import MAX_MESSAGE, JobChangeList
from jobqueue.admin.job_page import job_context
from jobqueue.admin.submit import submit
from jobqueue.disclosure import shown_error
from jobqueue.states import State


def _seconds(start: datetime, end: datetime) -> float:
    if timezone.is_naive(start) != timezone.is_naive(end):
        return 0.0
    return (end - start).total_seconds()


class JobColumns:
    """What lists of jobs show of each."""

    @admin.display(description=_("job"))
    def job_column(self, job: Any) -> Any:
        return marks.lines([marks.dotted(job.task, 120), marks.short_id(job.pk)])

    @admin.display(description=_("state, attempts"))
    def state_column(self, job: Any) -> Any:
        return marks.lines([marks.badge(job.state), self.attempts_column(job)])

    @admin.display(description=_("queue"))
    def queue_column(self, job: Any) -> Any:
        priority = _("priority %(priority)s") % {"priority": f"{job.priority:+}"}
        return marks.lines([marks.dotted(job.queue, 60), job.priority and marks.note(priority)])

    @admin.display(description=_("attempts"))
    def attempts_column(self, job: Any) -> Any:
        return marks.attempts(job.attempts, job.failures, job.max_attempts)

    @admin.display(description=_("enqueued"))
    def enqueued_column(self, job: Any) -> Any:
        """Return when a job was enqueued, by which the list is sorted, and until when it waits."""
        waits = job.state in (State.SCHEDULED, State.RETRYING)
        due = waits and marks.note(format_html(gettext("due {at}"), at=marks.moment(job.run_at)))
        return marks.lines([marks.moment(job.enqueued_at), due])

    @admin.display(description=_("last error"))
    def error_column(self, job: Any) -> Any:
        message = shown_error(
            job.error_head, task=job.task, may_see_payload=job.with_payload, most=MAX_MESSAGE
        )
        shown = marks.last_error(job.error_class, message, job.reason)
        return marks.nothing(shown) if shown == marks.NOTHING else marks.clamped(shown)

    @admin.display(description=_("ran for"))
    def duration_column(self, job: Any) -> Any:
        """Return how long the running attempt has run and where, or how long the last one ran."""
        if job.state == State.RUNNING and job.claimed_at is not None:
            ran = marks.span(_seconds(job.claimed_at, timezone.now()))
            return marks.lines([ran, marks.text(job.worker_name or job.worker, 40)])
        if job.last_run is None:
            return marks.nothing(marks.NOTHING)
        return marks.span(_seconds(*job.last_run))


class JobAdmin(JobColumns, JobActions, OperationsAdmin):
    """Jobs: found by the filter language, changed by named actions."""

    list_display = [
        "job_column",
        "state_column",
        "error_column",
        "queue_column",
        "enqueued_column",
        "duration_column",
    ]
    list_filter = [StateFilter, QueueFilter, TaskFilter, PeriodFilter, ErrorFilter, ScheduleFilter]
    search_fields = ["id"]  # the box is drawn; what is typed is a filter, see job_lists
    search_help_text = _(
        "Terms such as state:dead queue:mail task:shop.* error:ValueError tag:order:42 "
        "created>-2h, an id, or plain text. A minus in front excludes."
    )

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, permissions.VIEW)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[JobChangeList]:
        return JobChangeList

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        ours = [
            path("submit/", wrap(self.submit_view), name="jobqueue_job_submit"),
            path("<uuid:job_id>/do/<slug:verb>/", wrap(self.do_view), name="jobqueue_job_do"),
            path("selected/<slug:verb>/", wrap(self.selected_view), name="jobqueue_job_selected"),
            path("matching/<slug:verb>/", wrap(self.matching_view), name="jobqueue_job_matching"),
        ]
        return ours + super().get_urls()

    def submit_view(self, request: HttpRequest) -> HttpResponse:
        """Make a job by hand."""
        return submit(self, request)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Return the page of one job: it is looked at; buttons post elsewhere."""
        self.require(request, permissions.VIEW)
        try:
            job_id = UUID(object_id)
        except ValueError:
            return self._gone(request, object_id)
        context = job_context(self, request, job_id)
        if context is None:
            return self._gone(request, object_id)
        return self.page(request, "job/detail.html", context | (extra_context or {}))

    def _gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        text = _("There is no job “%(id)s”. It may have been pruned.")
        self.message_user(request, text % {"id": marks.cut(object_id, 60)}, messages.WARNING)
        return self.redirect(self.url("changelist"))
