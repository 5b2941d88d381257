"""Building the results of jobs: of one just inserted, and of one read from the database.

Whatever has changed since a job was enqueued (its task renamed, its queue or alias gone from the
settings, its row written by an older version), it still has a result.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from itertools import batched
from typing import Any, cast
from uuid import UUID

from jobqueue.compat import TaskError, TaskResultDoesNotExist, task_backends
from jobqueue.conf import ENQUEUE_CHUNK, UNLIMITED, options_for
from jobqueue.engine.registry import registry
from jobqueue.exceptions import TaskNotRegistered
from jobqueue.payload import decode_arguments
from jobqueue.results import STATUS, JobResult, build
from jobqueue.states import FAILURES, Outcome, State
from jobqueue.storage.records import Inserted, NewJob
from jobqueue.tasks import JobTask
from jobqueue.unique import Unique


class MissingTask(JobTask[..., Any]):
    """Stands for a task that this process does not know, in the result of one of its jobs."""

    __slots__ = ()

    @classmethod
    def named(cls, name: str, **values: Any) -> MissingTask:
        """Return the stand-in for the task called `name`; running or enqueueing it raises."""

        def missing(*args: Any, **kwargs: Any) -> Any:
            raise TaskNotRegistered(f"Task {name!r} is not registered in this process.")

        missing.__module__, _, missing.__qualname__ = name.rpartition(".")
        missing.__name__ = missing.__qualname__
        defaults = {f.name: f.default for f in fields(JobTask) if f.name != "func"}
        return cls._unchecked(defaults | {"atomic": True} | values | {"func": missing})

    @classmethod
    def _reconstruct(cls, kwargs: dict[str, Any]) -> MissingTask:
        values = dict(kwargs)
        return cls.named(values.pop("func"), **values)


def new_result(task: JobTask[..., Any], job: NewJob, row: Inserted) -> JobResult[..., Any]:
    """Return the result of a job just inserted."""
    if task.run_after is not None:
        task = task.as_recorded(run_after=_run_after(row.run_at, row.enqueued_at))
    if isinstance(task.expires, timedelta):
        task = task.as_recorded(expires=row.enqueued_at + task.expires)
    args, kwargs = decode_arguments(job.arguments)
    state = State(row.state)
    return build(
        task=task,
        id=str(row.id),
        status=STATUS[state],
        enqueued_at=row.enqueued_at,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=args,
        kwargs=kwargs,
        backend=job.backend,
        errors=[],
        worker_ids=[],
        _return_value=None,
        job_state=state,
        reason="",
        already_enqueued=False,
    )


def placed_results(
    task: JobTask[..., Any], placed: Sequence[tuple[NewJob, Inserted]], alias: str
) -> list[JobResult[..., Any]]:
    """Return the results of unique jobs: of those just inserted, and of the twins of others.

    Raise TaskResultDoesNotExist if a twin that had ended long ago was pruned this very moment.
    """
    new = {row.id: new_result(task, job, row) for job, row in placed if job.id == row.id}
    twins = load_results([row.id for _, row in placed if row.id not in new], alias)
    results = []
    for job, row in placed:
        if job.id == row.id:
            results.append(new[row.id])
        else:
            results.append(marked(new.get(row.id) or twins[row.id]))
    return results


def marked(result: JobResult[..., Any]) -> JobResult[..., Any]:
    """Return a copy that says that the job had been enqueued already."""
    values = {f.name: getattr(result, f.name) for f in fields(result)}
    return build(**values | {"already_enqueued": True})


def load_result(result_id: Any, alias: str) -> JobResult[..., Any]:
    """Return the result of the job with this id in the database of TASKS alias `alias`.

    Raise TaskResultDoesNotExist if there is none, also for what is no id at all. A job whose task
    is not known here has a `MissingTask`, one with undecodable arguments has none.
    """
    job_id = parsed_id(result_id)
    found = load_results([job_id], alias)
    if job_id not in found:
        raise TaskResultDoesNotExist(str(job_id))
    return found[job_id]


def load_results(ids: Sequence[UUID], alias: str) -> dict[UUID, JobResult[..., Any]]:
    """Return the results of those of these jobs that there are; two or three queries a thousand."""
    database = options_for(alias).database
    results = {}
    for some in batched(dict.fromkeys(ids), ENQUEUE_CHUNK):
        jobs = _job_rows(some, database)
        attempts = _attempt_rows([job["id"] for job in jobs if job["attempts"]], database)
        tags = _tags([job["id"] for job in jobs], database)
        for job in jobs:
            task = _recorded_task(job, tuple(tags.get(job["id"], ())), alias)
            results[job["id"]] = _loaded(job, attempts.get(job["id"], []), task)
    return results


def _loaded(
    job: Mapping[str, Any], attempts: list[dict[str, Any]], task: JobTask[..., Any]
) -> JobResult[..., Any]:
    state = State(job["state"])
    started_at, last_attempted_at = _starts(job, attempts)
    args, kwargs = _decoded_arguments(job["arguments_text"])
    return build(
        task=task,
        id=str(job["id"]),
        status=STATUS[state],
        enqueued_at=job["enqueued_at"],
        started_at=started_at,
        finished_at=job["finished_at"],
        last_attempted_at=last_attempted_at,
        args=args,
        kwargs=kwargs,
        backend=job["backend"],
        errors=_errors(job, state, attempts),
        worker_ids=_worker_ids(job, attempts),
        _return_value=_decoded(job["result_text"]),
        job_state=state,
        reason=job["reason"],
        already_enqueued=False,
    )


def load_state(result_id: Any, alias: str) -> State:
    """Return the state of one job. Raise TaskResultDoesNotExist if there is no such job."""
    from jobqueue.models import Job

    found = Job.objects.using(options_for(alias).database).filter(pk=parsed_id(result_id))
    for state in found.values_list("state", flat=True):
        return State(state)
    raise TaskResultDoesNotExist(result_id)


def load_tick(job_id: UUID, database: str) -> datetime | None:
    """Return the instant of its schedule that a job stands for, None if it has none."""
    from jobqueue.models import Job

    rows = Job.objects.using(database).filter(pk=job_id)
    return rows.values_list("tick", flat=True).first()


def parsed_id(result_id: Any) -> UUID:
    """Return an id as a UUID; raise TaskResultDoesNotExist if it can be no job's."""
    try:
        return result_id if isinstance(result_id, UUID) else UUID(result_id)
    except (ValueError, TypeError, AttributeError):
        raise TaskResultDoesNotExist(result_id) from None


def _job_rows(ids: Collection[UUID], database: str) -> list[dict[str, Any]]:
    """Return jobs; documents as text, so that an undecodable one is no error here."""
    from django.db.models import TextField
    from django.db.models.functions import Cast

    from jobqueue.models import Job

    found = (
        Job.objects.using(database)
        .filter(pk__in=ids)
        .values(
            "id", "backend", "task", "queue", "priority", "state", "run_at", "enqueued_at",
            "expires_at", "unique_key", "max_attempts", "timeout", "attempts", "worker",
            "claimed_at", "finished_at", "error_class", "error_message", "reason",
            arguments_text=Cast("arguments", TextField()),
            result_text=Cast("result", TextField()),
        )
    )  # fmt: skip
    return cast(list[dict[str, Any]], list(found))


def _attempt_rows(ids: Collection[UUID], database: str) -> dict[UUID, list[dict[str, Any]]]:
    """Return the attempts of each job, in order."""
    from jobqueue.models import Attempt

    names = ("job_id", "outcome", "charged", "worker", "started_at", "error_class",
             "error_message", "traceback")  # fmt: skip
    attempts: dict[UUID, list[dict[str, Any]]] = {}
    if ids:
        found = Attempt.objects.using(database).filter(job_id__in=ids).order_by("job_id", "number")
        for row in found.values(*names):
            attempts.setdefault(row["job_id"], []).append(row)
    return attempts


def _tags(ids: Collection[UUID], database: str) -> dict[UUID, list[str]]:
    """Return the tags of each job, in the order in which they were given."""
    from jobqueue.models import JobTag

    tags: dict[UUID, list[str]] = {}
    found = JobTag.objects.using(database).filter(job_id__in=ids).order_by("id")
    for job_id, tag in found.values_list("job_id", "tag"):
        tags.setdefault(job_id, []).append(tag)
    return tags


def _starts(
    job: Mapping[str, Any], attempts: list[dict[str, Any]]
) -> tuple[datetime | None, datetime | None]:
    starts = [attempt["started_at"] for attempt in attempts]
    if job["claimed_at"] is not None:
        starts.append(job["claimed_at"])
    return (starts[0], starts[-1]) if starts else (None, None)


def _worker_ids(job: Mapping[str, Any], attempts: list[dict[str, Any]]) -> list[str]:
    counted = [a for a in attempts if a["charged"] or a["outcome"] == Outcome.SUCCEEDED]
    running = [job["worker"]] if job["worker"] is not None else []
    return [str(worker) for worker in [a["worker"] for a in counted] + running]


def _errors(
    job: Mapping[str, Any], state: State, attempts: list[dict[str, Any]]
) -> list[TaskError]:
    rows: list[Mapping[str, Any]] = [a for a in attempts if a["outcome"] in FAILURES]
    if not rows and state is State.DEAD and job["error_class"]:
        rows = [job]  # it died without an attempt
    return [
        TaskError(
            exception_class_path=row["error_class"],
            traceback=row.get("traceback") or f"{row['error_class']}: {row['error_message']}",
        )
        for row in rows
    ]


def _recorded_task(job: Mapping[str, Any], tags: tuple[str, ...], alias: str) -> JobTask[..., Any]:
    """Return the task as this job was enqueued: with its queue, priority, time and tags."""
    values: dict[str, Any] = {
        "backend": job["backend"] if job["backend"] in task_backends.settings else alias,
        "queue_name": job["queue"],
        "priority": job["priority"],
        "run_after": _run_after(job["run_at"], job["enqueued_at"]),
        "tags": tags,
        "expires": job["expires_at"],
    }
    limits = {"max_attempts": job["max_attempts"] or UNLIMITED, "timeout": job["timeout"]}
    try:
        task = registry.get(job["task"])
    except TaskNotRegistered:
        return MissingTask.named(job["task"], **values, **limits)
    if job["unique_key"] is not None and task.unique is None:
        values |= {"unique_key": job["unique_key"], "unique": Unique()}  # given by using()
    options = options_for(values["backend"])
    if task.attempts_allowed(options) == job["max_attempts"]:
        limits["max_attempts"] = task.max_attempts
    if task.timeout_seconds(options) == job["timeout"]:
        limits["timeout"] = task.timeout
    return task.as_recorded(**values, **limits)


def _run_after(run_at: datetime, enqueued_at: datetime) -> datetime | None:
    """Return when a job may start, None for a job that could start at once."""
    return run_at if run_at > enqueued_at else None


def _decoded_arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    try:
        return decode_arguments(text)
    except ValueError:
        return [], {}


def _decoded(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
