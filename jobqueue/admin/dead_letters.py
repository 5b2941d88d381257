"""Dead letters: jobs that nobody will run again unless somebody decides so."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from jobqueue.admin import marks
from jobqueue.admin.job_actions import DISCARD, REQUEUE, export_selected
from jobqueue.admin.job_filters import (
    DeadTaskFilter,
    DiedFilter,
    ErrorFilter,
    PoisonFilter,
    QueueFilter,
)
from jobqueue.admin.job_lists import JobChangeList
from jobqueue.admin.jobs import JobAdmin
from jobqueue.engine.job_walks import Walk, gather
from jobqueue.models import Job
from jobqueue.states import State


class DeadChangeList(JobChangeList):
    """A page of dead letters, found through the index of the dead."""

    default_states = frozenset({State.DEAD})
    hidden_states = ""  # what it is a list of says its name

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        return super().get_queryset(request, exclude_parameters).filter(state=State.DEAD.value)

    def walk(self) -> Walk:
        return gather(self.queryset) if self.refused is not None else super().walk()


class DeadLetterAdmin(JobAdmin):
    """Dead letters: requeued or discarded, one by one or all that match."""

    change_list_template = "admin/jobqueue/job/change_list.html"
    list_display = [
        "job_column",
        "error_column",
        "queue_column",
        "attempts_column",
        "enqueued_column",
        "died_column",
    ]
    list_filter = [QueueFilter, DeadTaskFilter, DiedFilter, ErrorFilter, PoisonFilter]
    actions = (REQUEUE, DISCARD, export_selected)

    @admin.display(description=_("attempts"))
    def attempts_column(self, job: Any) -> Any:
        """Return how many failed, and how many workers were lost while they ran it, if any."""
        told = ngettext("%(count)s suspicion", "%(count)s suspicions", job.suspicions)
        suspicions = job.suspicions and marks.note(told % {"count": job.suspicions})
        return marks.lines([super().attempts_column(job), suspicions])

    @admin.display(description=_("died"))
    def died_column(self, job: Any) -> Any:
        return marks.moment(job.finished_at)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[DeadChangeList]:
        return DeadChangeList

    def get_queryset(self, request: HttpRequest) -> Any:
        return Job.objects.using(super().get_queryset(request).db)

    def get_urls(self) -> Any:
        return super(JobAdmin, self).get_urls()  # what is done to jobs has one address

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Return the job's own page, which says what may be done to it."""
        try:
            return self.redirect(self.url_of("job", "change", UUID(object_id)))
        except ValueError:
            return self._gone(request, object_id)
