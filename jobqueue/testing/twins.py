"""Unique jobs in eager mode: the same rules, asked of the results of this process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from jobqueue.payload import decode_arguments
from jobqueue.results import JobResult
from jobqueue.states import WAITING, State
from jobqueue.storage.records import NewJob
from jobqueue.testing.results import EagerResult
from jobqueue.unique import DONE


def find_twin(job: NewJob, results: Iterable[JobResult[..., Any]]) -> EagerResult | None:
    """Return the result of the job that holds the unique key of `job`, if there is one."""
    if job.unique_key is None:
        return None
    for result in results:
        if isinstance(result, EagerResult) and _is_twin(result.job, job) and _holds_key(result):
            return result
    return None


def replaced(result: EagerResult, job: NewJob) -> dict[str, Any]:
    """Return the values of `result` after `job` has replaced its arguments and priority."""
    args, kwargs = decode_arguments(job.arguments)
    return {
        "args": args,
        "kwargs": kwargs,
        "task": _with(result, priority=job.priority),
        "job_state": result.job_state,
        "job": replace(result.job, arguments=job.arguments, priority=job.priority),
    }


def rescheduled(result: EagerResult, job: NewJob, run_at: datetime, is_due: bool) -> dict[str, Any]:
    """Return the values of `result` after it was given the time to run of `job`."""
    later = State.RETRYING if result.job_state is State.RETRYING else State.SCHEDULED
    return {
        "task": _with(result, run_after=None if is_due else run_at),
        "job_state": State.READY if is_due else later,
        "job": replace(result.job, run_at=job.run_at, delay=job.delay),
    }


def _is_twin(one: NewJob, other: NewJob) -> bool:
    return (one.task, one.unique_key) == (other.task, other.unique_key)


def _holds_key(result: EagerResult) -> bool:
    job = result.job
    if result.job_state in WAITING:
        return True
    if result.job_state is State.RUNNING:
        return job.unique_until == DONE
    if job.unique_window is None:
        return False
    enqueued_at = result.enqueued_at
    assert enqueued_at is not None
    if timezone.is_naive(enqueued_at):
        enqueued_at = timezone.make_aware(enqueued_at)
    return datetime.now(UTC) < enqueued_at + timedelta(seconds=job.unique_window)


def _with(result: EagerResult, **changes: Any) -> Any:
    return result.task.as_recorded(**changes)  # type: ignore[attr-defined] # a JobTask
