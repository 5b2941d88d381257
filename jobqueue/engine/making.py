"""Making jobs on somebody's behalf: one that is named, or again one that has ended.

The job and its Action row are one transaction. Who may make which job is decided by the task:
staff only those that say ``expose={"staff"}``, HTTP clients those with ``expose={"api"}``, a
shell all. What a refused caller is told does not say whether the task exists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS, InvalidTask
from jobqueue.conf import jobqueue_aliases
from jobqueue.engine.changes import Change, Ids, change_jobs, jobs, send_hints
from jobqueue.engine.enqueue import creator
from jobqueue.engine.finding import stopped
from jobqueue.engine.operations import MAX_ROWS, Actor, Desk, Outcome, parse_ids
from jobqueue.engine.registry import discover, registry
from jobqueue.engine.uniqueness import insert_unique
from jobqueue.engine.verbs import ACTIONS
from jobqueue.events import emit
from jobqueue.exceptions import InvalidArgument, TaskNotExposed
from jobqueue.ids import new_job_id
from jobqueue.models import Job, JobTag
from jobqueue.payload import decode_arguments
from jobqueue.storage import Storage
from jobqueue.storage.records import NewJob
from jobqueue.tasks import JobTask
from jobqueue.unique import KEEP

EXPOSURE = {"admin": "staff", "page": "staff", "api": "api"}
"""What a task must say to be offered on a surface. The shell is offered all."""
UNREADABLE, NOT_OFFERED = "unreadable", "not offered"
"""What happened to a job whose stored arguments cannot be decoded, or whose task is not offered."""
HAS_TWIN = "has a twin"
"""What happened to a job whose unique key another one holds."""


# --- a job that is named --------------------------------------------------------------------------


def exposed_task(name: str, surface: str) -> JobTask[..., Any]:
    """Return the task called `name` if `surface` offers it.

    Raise TaskNotRegistered in a shell, TaskNotExposed elsewhere. Only a shell may import a module
    by naming a task in it; elsewhere it is one of those that a worker would import by itself.
    """
    wanted = EXPOSURE.get(surface)
    if wanted is None:
        return registry.get(name)
    discover()
    task = registry.known(name)
    if task is None or wanted not in task.expose:
        raise TaskNotExposed(
            f"No task {name!r} is offered here. A task is where its definition says "
            f'expose={{"{wanted}"}}.'
        )
    return task


def exposed_tasks(surface: str) -> list[JobTask[..., Any]]:
    """Return the tasks that `surface` offers, by name; a shell is offered all."""
    discover()
    wanted = EXPOSURE.get(surface)
    offered = (task for task in registry if wanted is None or wanted in task.expose)
    return sorted(offered, key=lambda task: task.module_path)


def enqueue(
    task: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    actor: Actor,
    *,
    queue: str | None = None,
    priority: int | None = None,
    run_after: datetime | timedelta | None = None,
    tags: Collection[str] | None = None,
    max_attempts: Any = None,
    expires: datetime | timedelta | None = None,
    unique_key: str | None = None,
    backend: str | None = None,
) -> Any:
    """Make a job of the task called `task` in the actor's name; return its result.

    backend: the alias to enqueue through; None is the task's own. The rest as `JobTask.using`.
    Raise InvalidArgument for what cannot be.
    """
    found = exposed_task(task, actor.surface)
    desk = Desk(actor, _alias(found, backend))
    with _refusals():
        variant = found.using(
            backend=desk.backend,
            queue_name=queue,
            priority=priority,
            run_after=run_after,
            tags=tags,
            max_attempts=max_attempts,
            expires=expires,
            unique_key=unique_key,
        )
    return desk.transact(lambda storage: _enqueue(desk, variant, args, kwargs))


def _enqueue(
    desk: Desk, task: JobTask[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    token = creator.set(desk.actor.name)
    try:
        with _refusals():
            result = task.enqueue(*args, **kwargs)
    finally:
        creator.reset(token)
    desk.record("enqueue", 1, target=task.module_path, job_id=UUID(result.id))
    desk.after_commit(partial(_tell, desk.actor, result.id, task.module_path))
    return result


def _tell(actor: Actor, job_id: str, task: str) -> None:
    emit("job.enqueued", job=job_id, task=task, actor=actor.name, surface=actor.surface)


def _alias(task: JobTask[..., Any], given: str | None) -> str:
    alias = task.backend if given is None else given
    known = jobqueue_aliases()
    if alias not in known:
        raise InvalidArgument(
            f"TASKS has no alias {alias!r} that uses jobqueue's backend; it has "
            f"{', '.join(known) or 'none'}."
        )
    return alias


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn what the framework and Python say of bad values into InvalidArgument."""
    try:
        yield
    except InvalidArgument:
        raise
    except (InvalidTask, TypeError, ValueError) as error:
        raise InvalidArgument(stopped(str(error))) from error


# --- again ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Copied(Outcome):
    """What became of each job, and the new job of each that was copied."""

    copies: Mapping[UUID, UUID] = field(default_factory=dict)


def run_again(ids: Ids, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> Copied:
    """Make a new job of each that has ended, with the same task, arguments, tags and options.

    The new one says which it was copied from; the old one stays as it is. As with `enqueue`, the
    task must be offered to the actor's surface: a success that is repeated is a new effect.
    """
    wanted = parse_ids(ids)
    if len(wanted) > MAX_ROWS:
        raise InvalidArgument(f"At most {MAX_ROWS:,} jobs can be run again at once.")
    desk = Desk(actor, backend)
    copies: dict[UUID, UUID] = {}
    detail: dict[str, object] = {}

    def apply(storage: Storage, chosen: Sequence[UUID]) -> dict[UUID, str]:
        made, refused = _copies(desk, chosen)
        inserted = _insert(storage, made)
        for job in made:
            assert job.copied_from is not None
            if job.id in inserted:
                copies[job.copied_from] = job.id
            else:
                refused[job.copied_from] = HAS_TWIN
        detail["copies"] = [str(copies[job_id]) for job_id in sorted(copies)]
        return dict.fromkeys(copies, "copied") | refused

    def follow(desk: Desk, copied: Sequence[UUID]) -> None:
        send_hints(desk, [copies[job_id] for job_id in copied])

    change = Change(
        verb="run_again",
        done="copied",
        sources=ACTIONS["run_again"],
        apply=apply,
        follow=follow,
        detail=detail,
    )
    outcome = change_jobs(desk, change, wanted)
    return Copied(outcome.done, outcome.results, copies=copies)


def _insert(storage: Storage, made: Sequence[NewJob]) -> set[UUID]:
    """Insert the copies; return those that were: not one whose key is held."""
    by_task: dict[str | None, list[NewJob]] = {}
    for job in made:
        by_task.setdefault(job.task if job.unique_key else None, []).append(job)
    inserted = {row.id for row in storage.insert_jobs(by_task.pop(None, []))}
    for unique in by_task.values():
        placed = insert_unique(storage, unique, KEEP, lambda jobs: [jobs])
        inserted |= {row.id for job, row in placed if row.id == job.id}
    return inserted


def _ended(desk: Desk, ids: Sequence[UUID]) -> QuerySet[Job]:
    found = jobs(desk, ids).filter(state__in=ACTIONS["run_again"]).order_by("id")
    # The text itself: decoding and encoding again could change a number.
    return found.annotate(arguments_text=Cast("arguments", TextField())).defer(
        "arguments", "result", "error_message", "trace_context"
    )


def _copies(desk: Desk, ids: Sequence[UUID]) -> tuple[list[NewJob], dict[UUID, str]]:
    """Return the jobs to insert, and why others are not copied."""
    found = list(_ended(desk, ids))
    tags = _tags(desk, [job.id for job in found])
    offered = {task: _is_offered(task, desk.actor.surface) for task in {j.task for j in found}}
    made: list[NewJob] = []
    refused: dict[UUID, str] = {}
    for job in found:
        if not offered[job.task]:
            refused[job.id] = NOT_OFFERED
        elif not _is_readable(job.arguments_text):  # type: ignore[attr-defined]
            refused[job.id] = UNREADABLE
        else:
            made.append(_copy(desk, job, tags.get(job.id, ())))
    return made, refused


def _is_offered(task: str, surface: str) -> bool:
    if surface not in EXPOSURE:
        return True  # a shell may also copy what is registered elsewhere only
    try:
        exposed_task(task, surface)
    except TaskNotExposed:
        return False
    return True


def _is_readable(arguments: str) -> bool:
    try:
        decode_arguments(arguments)
    except InvalidArgument:
        return False
    return True


def _tags(desk: Desk, ids: Sequence[UUID]) -> dict[UUID, tuple[str, ...]]:
    rows = JobTag.objects.using(desk.database).filter(job_id__in=ids).order_by("id")
    found: dict[UUID, tuple[str, ...]] = {}
    for job_id, tag in rows.values_list("job_id", "tag"):
        found[job_id] = (*found.get(job_id, ()), tag)
    return found


def _copy(desk: Desk, job: Any, tags: tuple[str, ...]) -> NewJob:
    return NewJob(
        id=new_job_id(),
        backend=job.backend,
        task=job.task,
        queue=job.queue,
        arguments=job.arguments_text,
        timeout=job.timeout,
        aging_seconds=desk.options.aging_seconds,
        priority=job.priority,
        max_attempts=job.max_attempts,
        on_crash=job.on_crash,
        unique_key=job.unique_key,
        unique_until=job.unique_until,
        copied_from=job.id,
        limit_key=job.limit_key,
        created_by=desk.actor.name,
        tags=tags,
    )
