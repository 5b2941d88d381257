"""The result of a job: Django's TaskResult, and what a job knows beyond it.

    result = send_receipt.enqueue(order.pk)
    result.wait(timeout=30).return_value
    await result.wait_async(timeout=30)

`job_state` is the job's own state (see `jobqueue.states.State`), of which Django's `status` is
the coarse form: SCHEDULED, READY, BLOCKED and RETRYING are READY; DEAD and CANCELLED are FAILED.
`reason` says why a job is blocked, dead or cancelled.

`worker_ids` has one entry for each attempt that was charged or succeeded, and one for the attempt
now running; `errors` one for each attempt that failed, timed out or lost its worker.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, cast
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.transaction import TransactionManagementError

from jobqueue.compat import (
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
)
from jobqueue.conf import UNLIMITED, options_for
from jobqueue.engine.registry import registry
from jobqueue.exceptions import TaskNotRegistered
from jobqueue.payload import decode_arguments
from jobqueue.states import FINISHED, Outcome, State
from jobqueue.storage.records import Inserted, NewJob
from jobqueue.tasks import JobTask, MissingTask

FIRST_POLL_SECONDS = 0.02
LAST_POLL_SECONDS = 1.0
"""wait() looks at once, then ever more rarely: one query by primary key each."""

STATUS = {
    State.SCHEDULED: TaskResultStatus.READY,
    State.READY: TaskResultStatus.READY,
    State.BLOCKED: TaskResultStatus.READY,
    State.RETRYING: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    State.DEAD: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
}

_WITH_ERROR = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST})

if TYPE_CHECKING:

    class _FrameworkResult[**P, R](TaskResult[P, R]):
        """`TaskResult` is generic for type checkers and in the backport, not in Django itself."""

else:

    class _FrameworkResult[**P, R](TaskResult):
        __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult[**P, R](_FrameworkResult[P, R]):  # type: ignore[misc] # frozen, unlike in its stub
    """A job as it was when it was read; `refresh()` reads it again."""

    job_state: State
    reason: str = ""

    def refresh(self) -> None:
        """Read the job again. Raise TaskResultDoesNotExist if it has been pruned."""
        self._take(self.task.get_backend().get_result(self.id))

    async def arefresh(self) -> None:
        """See refresh()."""
        self._take(await self.task.get_backend().aget_result(self.id))

    def _take(self, fresh: TaskResult[..., Any]) -> None:
        for field in fields(fresh):
            if field.name != "task":
                object.__setattr__(self, field.name, getattr(fresh, field.name))

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until the job has ended, and return this result, refreshed.

        timeout: seconds; None waits for ever. Raise TimeoutError if it has not ended by then,
        TransactionManagementError if it could never be seen to end: without a time-out inside a
        transaction, whose own jobs start only after its commit.
        """
        for pause in _pauses(timeout, self.id):
            if self._has_ended(timeout):
                return self
            time.sleep(pause)
        raise AssertionError("unreachable: the pauses end by raising")

    async def wait_async(self, timeout: float | None = None) -> Self:
        """See wait()."""
        has_ended = sync_to_async(self._has_ended, thread_sensitive=True)
        for pause in _pauses(timeout, self.id):
            if await has_ended(timeout):
                return self
            await asyncio.sleep(pause)
        raise AssertionError("unreachable: the pauses end by raising")

    def _has_ended(self, timeout: float | None) -> bool:
        if self.is_finished:
            return True
        database = options_for(self.backend).database
        if state_of(self.id, database) in FINISHED:
            self.refresh()
            return True
        if timeout is None and connections[database].in_atomic_block:
            raise TransactionManagementError(
                "wait() without a timeout inside a transaction: a job that was enqueued in it does "
                "not start before its commit. Wait after the commit, or give a timeout."
            )
        return False


def _pauses(timeout: float | None, job_id: str) -> Iterator[float]:
    """Yield the seconds to sleep between looks; raise TimeoutError when the time is up."""
    start, pause = time.monotonic(), FIRST_POLL_SECONDS
    while True:
        left = float("inf") if timeout is None else start + timeout - time.monotonic()
        if left <= 0:
            # The look that follows this last yield is the one at the deadline.
            yield 0.0
            raise TimeoutError(f"Job {job_id} has not ended within {timeout:g} s.")
        yield min(pause, left)
        pause = min(pause * 1.5, LAST_POLL_SECONDS)


# --- building ------------------------------------------------------------------------------------


def new_result(task: JobTask[..., Any], job: NewJob, row: Inserted) -> JobResult[..., Any]:
    """Return the result of a job just inserted."""
    if task.run_after is not None:
        task = task.as_recorded(run_after=_run_after(row.run_at, row.enqueued_at))
    args, kwargs = decode_arguments(job.arguments)
    state = State(row.state)
    return _built(
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
    )


def load_result(result_id: Any, alias: str) -> JobResult[..., Any]:
    """Return the result of the job with this id in the database of TASKS alias `alias`.

    Raise TaskResultDoesNotExist if there is none, also for what is no id at all. A job whose task
    is not known here has a `MissingTask`, one with undecodable arguments has none.
    """
    database = options_for(alias).database
    job = _job_row(_parsed_id(result_id), database)
    attempts = _attempt_rows(job["id"], database) if job["attempts"] else []
    state = State(job["state"])
    started_at, last_attempted_at = _starts(job, attempts)
    args, kwargs = _decoded_arguments(job["arguments_text"])
    return _built(
        task=_recorded_task(job, alias, database),
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
    )


def state_of(result_id: str, database: str) -> State:
    """Return the state of one job. Raise TaskResultDoesNotExist if there is no such job."""
    from jobqueue.models import Job

    found = Job.objects.using(database).filter(pk=UUID(result_id)).values_list("state", flat=True)
    for state in found:
        return State(state)
    raise TaskResultDoesNotExist(result_id)


def _built(**values: Any) -> JobResult[..., Any]:
    """Return a result without the constructor's normalizing: its values came out of JSON."""
    result: JobResult[..., Any] = object.__new__(JobResult)
    for name, value in values.items():
        object.__setattr__(result, name, value)
    return result


def _parsed_id(result_id: Any) -> UUID:
    try:
        return result_id if isinstance(result_id, UUID) else UUID(result_id)
    except (ValueError, TypeError, AttributeError):
        raise TaskResultDoesNotExist(result_id) from None


def _job_row(job_id: UUID, database: str) -> dict[str, Any]:
    """Return one job; documents as text, so that an undecodable one is no error here."""
    from django.db.models import TextField
    from django.db.models.functions import Cast

    from jobqueue.models import Job

    found = (
        Job.objects.using(database)
        .filter(pk=job_id)
        .values(
            "id", "backend", "task", "queue", "priority", "state", "run_at", "enqueued_at",
            "max_attempts", "timeout", "attempts", "worker", "claimed_at", "finished_at",
            "error_class", "error_message", "reason",
            arguments_text=Cast("arguments", TextField()),
            result_text=Cast("result", TextField()),
        )
    )  # fmt: skip
    for row in found:
        return cast(dict[str, Any], row)
    raise TaskResultDoesNotExist(str(job_id))


def _attempt_rows(job_id: UUID, database: str) -> list[dict[str, Any]]:
    from jobqueue.models import Attempt

    found = Attempt.objects.using(database).filter(job_id=job_id).order_by("number")
    names = ("outcome", "charged", "worker", "started_at", "error_class", "error_message",
             "traceback")  # fmt: skip
    return list(found.values(*names))


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
    rows: list[Mapping[str, Any]] = [a for a in attempts if a["outcome"] in _WITH_ERROR]
    if not rows and state is State.DEAD and job["error_class"]:
        rows = [job]  # it died without an attempt
    return [
        TaskError(
            exception_class_path=row["error_class"],
            traceback=row.get("traceback") or f"{row['error_class']}: {row['error_message']}",
        )
        for row in rows
    ]


def _recorded_task(job: Mapping[str, Any], alias: str, database: str) -> JobTask[..., Any]:
    """Return the task as this job was enqueued: with its queue, priority, time and tags."""
    from jobqueue.models import JobTag

    tags = JobTag.objects.using(database).filter(job_id=job["id"]).order_by("id")
    values = {
        "backend": job["backend"] if job["backend"] in task_backends.settings else alias,
        "queue_name": job["queue"],
        "priority": job["priority"],
        "run_after": _run_after(job["run_at"], job["enqueued_at"]),
        "tags": tuple(tags.values_list("tag", flat=True)),
    }
    limits = {"max_attempts": job["max_attempts"] or UNLIMITED, "timeout": job["timeout"]}
    try:
        task = registry.get(job["task"])
    except TaskNotRegistered:
        return MissingTask.named(job["task"], **values, **limits)
    options = options_for(alias)
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
