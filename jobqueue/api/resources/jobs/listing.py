"""``GET /jobs/``: jobs by a filter, page by page, the newest first.

Pages are cut by id alone, so nothing is shown twice or left out while jobs come and go. Nothing is
counted. Where a filter matches little of a long history a page may be short, even empty, and
`is_partial`: `next` goes on from where the search stopped, and is null only at the end.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import SIGNED_IN, needs
from jobqueue.api.answers import conditional
from jobqueue.api.documents import Document
from jobqueue.api.resources.jobs import examples
from jobqueue.api.resources.jobs.choosing import JobsQuery
from jobqueue.api.resources.jobs.documents import JobSummary, summaries


class JobList(Document):
    """A page of jobs."""

    results = JobSummary(many=True)
    next = serializers.CharField(allow_null=True, help_text="Address of the older ones.")
    previous = serializers.CharField(allow_null=True, help_text="Address of the newer ones.")
    is_partial = serializers.BooleanField(
        help_text="The search has stopped before the page was full; the address beside it goes on."
    )


EXAMPLE = {
    "results": [examples.SUMMARY],
    "next": f"/jobqueue/api/v1/jobs/?state=dead&limit=1&older_than={examples.JOB_ID}",
    "previous": None,
    "is_partial": False,
}


class ListJobs:
    """The methods of the collection that read it."""

    @extend_schema(responses={200: JobList}, examples=[OpenApiExample("a page", value=EXAMPLE)])
    @needs(SIGNED_IN, query=JobsQuery, problems=("invalid-filter", "permission-denied"))
    def get(self: Any, request: Request) -> HttpResponse:
        """List jobs, the newest first.

        Callers without the permission `jobqueue.view_job` see those that they have enqueued. A
        page may be short where a filter matches little: follow `next` until it is null.
        """
        query = self.query
        page = control.job_page(
            query["filter"],
            older_than=query.get("older_than"),
            newer_than=query.get("newer_than"),
            limit=query.get("limit", self.options.page_size),
            default=query["default_states"],
            owner=None if self.caller.sees_all else self.caller.owner,
            backend=self.backend,
        )
        document = {
            "results": summaries(page.jobs, self.caller, self.database),
            "next": _address(request, "older_than", page.older),
            "previous": _address(request, "newer_than", page.newer),
            "is_partial": page.is_partial,
        }
        return conditional(request, document)


def _address(request: Request, edge: str, job_id: UUID | None) -> str | None:
    """Return the address of the page beside this one."""
    if job_id is None:
        return None
    edges = ("older_than", "newer_than")
    kept = [(name, value) for name, value in request.query_params.items() if name not in edges]
    return f"{request.path}?{urlencode([*kept, (edge, str(job_id))])}"
