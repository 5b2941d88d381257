"""A job as it is answered: in a list, and by itself.

What is hidden from whoever lacks `view_job_payload` is said in `jobqueue.disclosure` (it is null or
blank, and `payload_hidden` is true); from everybody what the REDACT hook hides. A document
in the row that is no JSON is null, and `payload_unreadable` is true. A task that this process does
not know changes nothing of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from rest_framework import serializers

from jobqueue.api.caller import Caller
from jobqueue.api.documents import AnyJSON, Document, nullable_number, nullable_time
from jobqueue.api.resources.jobs.payload import arguments_of, is_call
from jobqueue.api.values import is_unreadable, moment, shown, text
from jobqueue.control import allowed_actions
from jobqueue.disclosure import shown_error, shown_key, shown_words
from jobqueue.engine.loading_reports import load_progress
from jobqueue.engine.registry import registry
from jobqueue.exceptions import TaskNotRegistered
from jobqueue.models import CancelRequest, Job, JobTag
from jobqueue.redaction import redact
from jobqueue.states import State
from jobqueue.tasks import JobTask

MESSAGE = "Without view_job_payload: its first line without numbers, ids and quoted text."
OFFERED = frozenset(
    {"cancel", "requeue", "discard", "run_now", "reprioritize", "move", "reschedule"}
)
"""Actions on a job that have an address."""


class JobSummary(Document):
    """A job in a list."""

    id = serializers.UUIDField()
    task = serializers.CharField()
    queue_name = serializers.CharField()
    priority = serializers.IntegerField(min_value=-100, max_value=100)
    state = serializers.ChoiceField(choices=[state.value for state in State])
    reason = serializers.CharField(
        allow_blank=True, help_text="Why it is blocked, dead or cancelled."
    )
    attempts = serializers.IntegerField(help_text="Executions that have ended.")
    failures = serializers.IntegerField(help_text="Those that count against max_attempts.")
    max_attempts = serializers.IntegerField(allow_null=True, help_text="null: unlimited.")
    enqueued_at = serializers.DateTimeField()
    run_at = serializers.DateTimeField(help_text="Not before.")
    started_at = nullable_time(
        "When the attempt that runs now began, else the last one. null: none has."
    )
    finished_at = nullable_time()
    worker = serializers.UUIDField(allow_null=True, help_text="That runs it now.")
    error_class = serializers.CharField(allow_blank=True, help_text="Of the last error.")
    error_message = serializers.CharField(allow_blank=True, help_text=MESSAGE)
    error_fingerprint = serializers.CharField(allow_blank=True, help_text="Equal if alike.")
    schedule = serializers.CharField(allow_blank=True)
    created_by = serializers.CharField(allow_blank=True)
    tags = serializers.ListField(child=serializers.CharField())
    version = serializers.IntegerField(help_text="Grows with every change.")
    allowed_actions = serializers.ListField(
        child=serializers.ChoiceField(choices=sorted(OFFERED)),
        help_text="What its state and the caller's permissions allow.",
    )


class ProgressDocument(Document):
    """How far a job said that it had come."""

    done = serializers.FloatField()
    total = nullable_number()
    message = serializers.CharField(allow_blank=True)
    reported_at = serializers.DateTimeField()


class CancelRequested(Document):
    """That somebody asked a running job to stop."""

    reason = serializers.CharField()
    requested_at = serializers.DateTimeField()


class Arguments(Document):
    """What the task is called with."""

    args = serializers.ListField(child=AnyJSON())
    kwargs = serializers.DictField(child=AnyJSON())


class JobDetail(JobSummary):
    """A job by itself. Whole numbers beyond 2^53 in arguments and results are text."""

    backend = serializers.CharField(help_text="Alias in TASKS.")
    task_known = serializers.BooleanField(help_text="To the process that answers.")
    atomic = serializers.BooleanField(
        allow_null=True,
        help_text="Its writes and its completion are one transaction. null: task unknown here.",
    )
    expires_at = nullable_time("Not started by then, it is cancelled.")
    deadline = nullable_time("Of the attempt that runs now.")
    timeout = serializers.FloatField(help_text="Seconds that an attempt may run.")
    on_crash = serializers.ChoiceField(choices=["retry", "bury"])
    suspicions = serializers.IntegerField(help_text="Workers lost while it ran.")
    alone = serializers.BooleanField(help_text="It runs in a process of its own.")
    tick = nullable_time("The instant of its schedule.")
    copied_from = serializers.UUIDField(allow_null=True)
    limit_key = serializers.CharField(allow_null=True)
    unique_key = serializers.CharField(allow_null=True)
    arguments = Arguments(allow_null=True)
    result = AnyJSON()
    payload_hidden = serializers.BooleanField()
    payload_unreadable = serializers.BooleanField()
    progress = ProgressDocument(allow_null=True)
    cancel_requested = CancelRequested(allow_null=True)


def summaries(jobs: Sequence[Job], caller: Caller, database: str) -> list[dict[str, Any]]:
    """Return jobs for a list; their tags are one query."""
    tags = tags_of([job.id for job in jobs], database)
    return [summary(job, tags.get(job.id, []), caller) for job in jobs]


def summary(job: Job, tags: Sequence[str], caller: Caller) -> dict[str, Any]:
    """Return a job for a list, read `with_last_start`. Its large columns are not read."""
    return {
        "id": str(job.id),
        "task": text(job.task),
        "queue_name": text(job.queue),
        "priority": job.priority,
        "state": job.state,
        "reason": text(job.reason),
        "attempts": job.attempts,
        "failures": job.failures,
        "max_attempts": job.max_attempts,
        "enqueued_at": moment(job.enqueued_at),
        "run_at": moment(job.run_at),
        "started_at": moment(job.claimed_at or job.last_started_at),  # type: ignore[attr-defined]
        "finished_at": moment(job.finished_at),
        "worker": None if job.worker is None else str(job.worker),
        "error_class": text(job.error_class),
        "error_message": text(
            shown_error(job.error_message, task=job.task, may_see_payload=caller.sees_payload)
        ),
        "error_fingerprint": job.error_fingerprint,
        "schedule": text(job.schedule),
        "created_by": text(job.created_by),
        "tags": [text(tag) for tag in tags],
        "version": shown(job.version),
        "allowed_actions": actions_for(job.state, caller),
    }


def detail(job: Job, caller: Caller, backend: str, database: str) -> dict[str, Any]:
    """Return all that is told of a job; up to three queries."""
    tags = tags_of([job.id], database).get(job.id, [])
    task = _task(job.task)
    return {
        **summary(job, tags, caller),
        "backend": job.backend,
        "task_known": task is not None,
        "atomic": None if task is None else task.atomic,
        "expires_at": moment(job.expires_at),
        "deadline": moment(job.deadline),
        "timeout": shown(job.timeout),
        "on_crash": job.on_crash,
        "suspicions": job.suspicions,
        "alone": job.alone,
        "tick": moment(job.tick),
        "copied_from": None if job.copied_from is None else str(job.copied_from),
        "limit_key": shown(shown_key(job.limit_key, may_see_payload=caller.sees_payload)),
        "unique_key": shown(shown_key(job.unique_key, may_see_payload=caller.sees_payload)),
        **_payload(job, caller),
        "progress": _progress(job, caller, backend) if job.attempts or job.worker else None,
        "cancel_requested": _request(job, database) if job.state == State.RUNNING else None,
    }


def actions_for(state: str, caller: Caller) -> list[str]:
    """Return what may be done to a job in `state`, by this caller and through the API."""
    allowed = allowed_actions(State(state))
    return [name for name in allowed if name in OFFERED and caller.may(name)]


def tags_of(ids: Sequence[UUID], database: str) -> Mapping[UUID, list[str]]:
    """Return the tags of jobs, in the order in which they were given."""
    found: dict[UUID, list[str]] = {}
    rows = JobTag.objects.using(database).filter(job_id__in=ids).order_by("id") if ids else ()
    for row in rows:
        found.setdefault(row.job_id, []).append(row.tag)
    return found


# --- parts ----------------------------------------------------------------------------------------


def _payload(job: Job, caller: Caller) -> dict[str, Any]:
    is_hidden = not caller.sees_payload
    bad = is_unreadable(job.arguments) or is_unreadable(job.result) or not is_call(job.arguments)
    hidden: dict[str, Any] = {"arguments": None, "result": None}
    if not is_hidden:
        hidden = {
            "arguments": arguments_of(job.arguments, job.task),
            "result": None
            if is_unreadable(job.result) or job.result is None
            else shown(redact(job.result, task=job.task, part="result")),
        }
    return hidden | {"payload_hidden": is_hidden, "payload_unreadable": bad}


def _task(name: str) -> JobTask[..., Any] | None:
    try:
        return registry.get(name)
    except TaskNotRegistered:
        return None


def _progress(job: Job, caller: Caller, backend: str) -> dict[str, Any] | None:
    found = load_progress(job.id, backend)
    if found is None:
        return None
    return {
        "done": shown(found.done),
        "total": shown(found.total),
        "message": text(
            shown_words(found.message, task=job.task, may_see_payload=caller.sees_payload) or ""
        ),
        "reported_at": moment(found.reported_at),
    }


def _request(job: Job, database: str) -> dict[str, Any] | None:
    row = CancelRequest.objects.using(database).filter(job_id=job.id).first()
    if row is None:
        return None
    return {"reason": text(row.reason), "requested_at": moment(row.requested_at)}
