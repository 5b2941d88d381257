"""``POST /jobs/`` and ``/jobs/batch/``: jobs are made, once however often a request is repeated.

An answer of 2xx leaves after the COMMIT, with the very bytes that a repeat will be given
(`jobqueue.engine.idempotency`). 201: made; 200: another job holds the unique key, and the answer
is about that one, which the caller may see. A twin that they may not see is 409.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.urls import URLPattern, path
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import needs
from jobqueue.api.repeating import KEY_PROBLEMS, request_key, response_of, stored_answer
from jobqueue.api.resources.jobs.enqueue_document import batch_document, job_document
from jobqueue.api.resources.jobs.fields import Anything, Moment, Priority, Text
from jobqueue.api.serializers import StrictSerializer
from jobqueue.api.views import ApiView
from jobqueue.conf import MAX_QUEUE_NAME_LENGTH, MAX_TASK_NAME_LENGTH
from jobqueue.engine.definitions import MAX_TAG_LENGTH, MAX_TAGS
from jobqueue.results import JobResult
from jobqueue.unique import MAX_KEY_LENGTH

CONFLICTS = (
    "task-not-exposed",
    "payload-too-large",
    *KEY_PROBLEMS,
    "unique-key-taken",
    "key-busy",
)
"""What either address may answer beyond what all do."""

Results = list[JobResult[..., Any]]
AnswerOf = Callable[[Results], control.StoredAnswer]


class JobRequest(StrictSerializer):
    """One job to enqueue. null, like leaving it out, takes the task's own."""

    task = Text(max_length=MAX_TASK_NAME_LENGTH, help_text="One that `/tasks/` lists.")
    args = serializers.ListField(child=Anything(), required=False, default=list)
    kwargs = serializers.DictField(child=Anything(), required=False, default=dict)
    queue_name = Text(
        max_length=MAX_QUEUE_NAME_LENGTH, required=False, allow_null=True, default=None
    )
    priority = Priority(required=False, allow_null=True, default=None)
    run_after = Moment(
        required=False,
        allow_null=True,
        default=None,
        help_text="A time with its zone, or an ISO 8601 duration from now. One that has passed "
        "means now.",
    )
    expires = Moment(
        required=False,
        allow_null=True,
        default=None,
        help_text="No attempt starts after this time, or this long after now.",
    )
    unique_key = Text(
        max_length=MAX_KEY_LENGTH,
        required=False,
        allow_null=True,
        default=None,
        help_text="While a job of this task with this key waits, no second one is made.",
    )
    tags = serializers.ListField(
        child=Text(max_length=MAX_TAG_LENGTH),
        max_length=MAX_TAGS,
        required=False,
        allow_null=True,
        default=None,
        help_text="Instead of the task's own.",
    )


class BatchRequest(StrictSerializer):
    """Jobs to enqueue, all or none: at most MAX_BATCH of the API."""

    jobs = serializers.ListField(child=JobRequest(), allow_empty=False)

    def to_internal_value(self, data: Any) -> Any:
        """Refuse too many before looking at each."""
        most = self.context["view"].options.max_batch
        given = data.get("jobs") if isinstance(data, Mapping) else None
        if isinstance(given, list) and len(given) > most:
            raise serializers.ValidationError(
                {"jobs": [f"must be at most {most:,} jobs, not {len(given):,}"]}
            )
        return super().to_internal_value(data)


class EnqueueJob:
    """The method of the collection that makes a job."""

    @job_document
    @needs("enqueue", body=JobRequest, problems=CONFLICTS)
    def post(self: Any, request: Request) -> HttpResponse:
        """Enqueue a job.

        Of a task that `/tasks/` lists, with arguments that fit it. If another job holds its unique
        key, none is made: the answer is 200 and about that one, or 409 where the caller may not
        see it.
        """
        root = request.path

        def answer(results: Results) -> control.StoredAnswer:
            (result,) = results
            location = f"{root}{result.id}/"
            return _answer(results, {"Location": location}, _document(result, location))

        return _submitted(self, "jobs", [_submission(self.body)], answer)


class BatchView(ApiView):
    """Jobs made together."""

    @batch_document
    @needs("enqueue", body=BatchRequest, problems=CONFLICTS)
    def post(self, request: Request) -> HttpResponse:
        """Enqueue many jobs, all or none.

        In one transaction, and in the order of the request. Every flaw is pointed at. A job whose
        unique key another one holds is not made, and `already_enqueued` says so.
        """
        jobs = [_submission(job, f"/jobs/{n}") for n, job in enumerate(self.body["jobs"])]

        def answer(results: Results) -> control.StoredAnswer:
            return _answer(results, {}, {"jobs": [_outcome(result) for result in results]})

        return _submitted(self, "jobs/batch", jobs, answer)


routes: list[URLPattern] = [path("jobs/batch/", BatchView.as_view(), name="jobs-batch")]
"""Addresses beside the collection's own."""


# --- the request ----------------------------------------------------------------------------------


def _submission(job: Mapping[str, Any], pointer: str = "") -> control.Submission:
    return control.Submission(**job, pointer=pointer)


def _submitted(
    view: ApiView, route: str, jobs: list[control.Submission], answer: AnswerOf
) -> HttpResponse:
    """Make the jobs, or find the answer that was given before; return it."""
    caller = view.caller
    given = control.submit(
        jobs,
        caller.actor,
        answer,
        owner=caller.owner,
        request=request_key(view, route, {"jobs": [_meaning(job) for job in jobs]}),
        own_only=not caller.sees_all,
        backend=view.backend,
    )
    return response_of(given)


def _meaning(job: control.Submission) -> dict[str, Any]:
    """Return what a job's request means, whatever was left out and however a time is written."""
    options = {name: _plain(value) for name, value in job.options().items()}
    return {"task": job.task, "args": job.args, "kwargs": job.kwargs, "options": options}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return {"seconds": value.total_seconds()} if isinstance(value, timedelta) else value


# --- the answer -----------------------------------------------------------------------------------


def _answer(results: Results, headers: dict[str, str], document: Any) -> control.StoredAnswer:
    is_new = any(not result.already_enqueued for result in results)
    return stored_answer(201 if is_new else 200, document, headers)


def _document(result: JobResult[..., Any], url: str) -> dict[str, Any]:
    """Return what is said of a job that was made, or found; never its arguments."""
    task: Any = result.task
    return {
        "id": result.id,
        "url": url,
        "task": task.module_path,
        "queue_name": task.queue_name,
        "priority": task.priority,
        "state": str(result.job_state),
        "enqueued_at": result.enqueued_at,
        "run_at": task.run_after or result.enqueued_at,
        "expires_at": task.expires,
        "tags": list(task.tags),
        "already_enqueued": result.already_enqueued,
    }


def _outcome(result: JobResult[..., Any]) -> dict[str, Any]:
    return {
        "id": str(UUID(result.id)),
        "state": str(result.job_state),
        "already_enqueued": result.already_enqueued,
    }
