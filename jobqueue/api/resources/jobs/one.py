"""``/jobs/{id}/``: one job, as it is, as it ends, and changed while it waits.

The ETag is the job's version with a digest of what else the answer says. If-Match makes a change
conditional on it (412): the version is compared again where the row is locked.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import SIGNED_IN, needs
from jobqueue.api.answers import conditional, require_match, versioned
from jobqueue.api.problems import Problem
from jobqueue.api.resources.jobs import examples
from jobqueue.api.resources.jobs.documents import JobDetail, actions_for, detail
from jobqueue.api.resources.jobs.fields import Moment, Priority, Text
from jobqueue.api.resources.jobs.waiting import wait_until
from jobqueue.api.serializers import StrictSerializer
from jobqueue.api.views import ApiView
from jobqueue.conf import MAX_QUEUE_NAME_LENGTH
from jobqueue.exceptions import WrongState
from jobqueue.models import Job
from jobqueue.models.job import JobQuerySet
from jobqueue.states import FINISHED

ETAG_HEADERS = [
    OpenApiParameter("ETag", str, OpenApiParameter.HEADER, response=[200], description="Of it."),
]
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="An ETag: 304 if it is still that."
)
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="An ETag: 412 unless it is still that."
)


class WaitQuery(StrictSerializer):
    """How long the answer may wait for the job's end."""

    wait = serializers.FloatField(
        required=False, min_value=0, help_text="Seconds; at most MAX_WAIT of the API."
    )

    def validate_wait(self, wait: float) -> float:
        """Refuse more than MAX_WAIT, and what is no number."""
        most = self.context["view"].options.max_wait
        if not wait <= most:
            raise serializers.ValidationError(f"must be at most {most:g} seconds")
        return wait


class JobChange(StrictSerializer):
    """What to change of a job that waits: all that is given, or nothing."""

    priority = Priority(required=False)
    queue_name = Text(required=False, max_length=MAX_QUEUE_NAME_LENGTH)
    run_after = Moment(
        required=False, help_text="A time with its zone, or an ISO 8601 duration from now."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse to change nothing."""
        if not attrs:
            raise serializers.ValidationError("give priority, queue_name or run_after")
        return attrs


class JobResource(ApiView):
    """What views of one job share: finding it, if the caller may know of it."""

    def jobs(self) -> JobQuerySet:
        """Return the jobs that the caller may know of."""
        return self.caller.own(Job.objects.using(self.database))

    def job(self, job_id: UUID) -> Job:
        """Return a job. Raise Problem if there is none that the caller may know of."""
        found = self.jobs().filter(id=job_id).with_last_start().first()
        if found is None:
            raise Problem("job-not-found")
        return found

    def require(self, job_id: UUID) -> None:
        """Raise Problem if there is no such job that the caller may know of."""
        if not self.jobs().filter(id=job_id).exists():
            raise Problem("job-not-found")

    def answer(self, request: Request, job_id: UUID, status: int = 200) -> HttpResponse:
        """Return a job as it is now."""
        job = self.job(job_id)
        document = detail(job, self.caller, self.backend, self.database)
        etag = versioned(job.version, document)
        return conditional(request, document, etag=etag, status=status)

    def refusal(self, error: WrongState) -> WrongState:
        """Return `error` with what this caller may do instead."""
        allowed = tuple(actions_for(error.current_state, self.caller))
        return WrongState(str(error), current_state=error.current_state, allowed_actions=allowed)


class JobView(JobResource):
    """One job."""

    @extend_schema(
        responses={200: JobDetail, 304: None},
        parameters=[IF_NONE_MATCH, *ETAG_HEADERS],
        examples=[OpenApiExample("a dead letter", value=examples.DETAIL)],
    )
    @needs(SIGNED_IN, query=WaitQuery, problems=("job-not-found",))
    def get(self, request: Request, job_id: UUID) -> HttpResponse:
        """Show a job, at once or once it has ended.

        With `wait` the answer comes when the job has ended, or after so many seconds with the job
        as it is then. If too many requests wait already it comes at once, with Retry-After.
        """
        seconds = self.query.get("wait")
        waited = not seconds or wait_until(lambda: self._ended(job_id), seconds, self.database)
        response = self.answer(request, job_id)
        if not waited:
            response["Retry-After"] = "1"
        return response

    def _ended(self, job_id: UUID) -> bool:
        state = self.jobs().filter(id=job_id).values_list("state", flat=True).first()
        return state is None or state in FINISHED

    @extend_schema(
        responses={200: JobDetail},
        parameters=[IF_MATCH, *ETAG_HEADERS],
        examples=[
            OpenApiExample(
                "sooner, and later",
                value={"priority": 10, "run_after": "2026-07-14T12:00:00Z"},
                request_only=True,
            ),
            OpenApiExample("changed", value=examples.CHANGED, response_only=True),
        ],
    )
    @needs(
        "reprioritize",
        body=JobChange,
        problems=("job-not-found", "wrong-state", "row-locked", "precondition-failed",
                  "invalid-argument", "invalid-run-after", "invalid-header"),
    )  # fmt: skip
    def patch(self, request: Request, job_id: UUID) -> HttpResponse:
        """Change the priority, queue or time of a job that waits.

        All that is given is changed, or nothing. The job keeps its id.
        """
        body = self.body
        job = self.job(job_id)
        version = job.version if require_match(request, job.version) else None
        try:
            control.edit_job(
                job_id,
                self.caller.actor,
                priority=body.get("priority"),
                queue=body.get("queue_name"),
                run_at=body.get("run_after"),
                version=version,
                backend=self.backend,
            )
        except WrongState as error:
            raise self.refusal(error) from error
        return self.answer(request, job_id)
