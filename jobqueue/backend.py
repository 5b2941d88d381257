"""Backends for the TASKS setting.

JobQueueBackend   the real one: jobs are rows, run by `manage.py runworker`.
ImmediateBackend  Django's, which runs a task where it is enqueued, but takes our options.
DummyBackend      Django's, which only remembers what was enqueued, but takes our options.

The two doubles take any queue unless QUEUES is given, run_after as a time or a delay
(ImmediateBackend ignores it), and `enqueue_many`. They do not serialize arguments; the backend of
`jobqueue.testing` does.

Backend instances are per thread: there is no shared state in them.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from asgiref.sync import sync_to_async

from jobqueue import compat
from jobqueue.conf import Options, options_for
from jobqueue.engine.definitions import check_queue_name, check_run_after
from jobqueue.engine.enqueue import Pair, insert
from jobqueue.engine.loading import MissingTask, load_result, load_state, new_result, placed_results
from jobqueue.engine.loading_reports import load_log, load_progress
from jobqueue.engine.registry import as_job_task
from jobqueue.exceptions import TaskNotRegistered
from jobqueue.results import JobLogLine, JobProgress, JobResult
from jobqueue.states import State
from jobqueue.tasks import JobTask


class _TakesDelays(compat.BaseTaskBackend):
    """Lets run_after be a timedelta, on which the framework's validation breaks with USE_TZ."""

    takes_delays = True
    supports_defer = True
    task_class = JobTask

    def validate_task(self, task: Any) -> None:
        """Raise InvalidTask or InvalidRunAfter if this backend cannot run `task`."""
        check_queue_name(task.queue_name)
        if task.run_after is not None:
            check_run_after(task.run_after)
        if self.queues and task.queue_name not in self.queues:  # before Django, who names none
            raise compat.InvalidTask(
                f"Queue {task.queue_name!r} is not in QUEUES of TASKS[{self.alias!r}], which has "
                f"{', '.join(sorted(self.queues))}."
            )
        if isinstance(task.run_after, timedelta):
            task = SimpleNamespace(
                func=task.func,
                priority=task.priority,
                queue_name=task.queue_name,
                takes_context=task.takes_context,
                run_after=None,
            )
        super().validate_task(task)


class JobQueueBackend(_TakesDelays):
    """Makes jobs in the database, in the caller's transaction."""

    is_jobqueue = True

    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    @property
    def job_options(self) -> Options:
        """The engine's options of this alias. Raise InvalidOptions if they cannot be used."""
        return options_for(self.alias)

    def enqueue(  # type: ignore[override] # the stub's result is generic in the task
        self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobResult[..., Any]:
        """Make a job of `task`; see `JobTask.enqueue`."""
        return self.enqueue_many(task, [(args, kwargs)])[0]

    def enqueue_many(self, task: Any, calls: Iterable[Pair]) -> list[JobResult[..., Any]]:
        """Make a job of each call, a pair (args, kwargs); see `JobTask.enqueue_many`."""
        if isinstance(task, MissingTask):
            raise TaskNotRegistered(f"Task {task.module_path!r} is not registered here.")
        self.validate_task(task)
        results = self.make_jobs(as_job_task(task), calls)
        self.announce(results)
        return results

    def make_jobs(
        self, task: JobTask[..., Any], calls: Iterable[Pair]
    ) -> list[JobResult[..., Any]]:
        """Insert the jobs of a task that is known to be valid."""
        rows = insert(task, calls, self.alias, self.job_options)
        if task.unique is not None:
            return placed_results(task, rows, self.alias)
        return [new_result(task, job, row) for job, row in rows]

    def announce(self, results: list[JobResult[..., Any]]) -> None:
        """Send task_enqueued for each new job, right after the insert, as Django does."""
        if results and compat.signal_is_heard(compat.task_enqueued, logging.DEBUG):
            for result in results:
                if result.already_enqueued:
                    continue
                # Robust: the job exists, whatever a receiver does; Django logs its error.
                compat.task_enqueued.send_robust(sender=type(self), task_result=result)

    async def aenqueue_many(self, task: Any, calls: Iterable[Pair]) -> list[JobResult[..., Any]]:
        """See enqueue_many()."""
        return await sync_to_async(self.enqueue_many, thread_sensitive=True)(task, calls)

    def get_result(self, result_id: str) -> JobResult[..., Any]:
        """Return the result of a job. Raise TaskResultDoesNotExist, also for a malformed id."""
        return load_result(result_id, self.alias)

    def job_state(self, result_id: str) -> State:
        """Return the state of a job, by one query. Raise TaskResultDoesNotExist."""
        return load_state(result_id, self.alias)

    def job_progress(self, result_id: str) -> JobProgress | None:
        """Return the progress of a job, by one query; None if it has reported none."""
        return load_progress(result_id, self.alias)

    def job_log(self, result_id: str) -> list[JobLogLine]:
        """Return the log lines of a job, of all its attempts, oldest first; one query."""
        return load_log(result_id, self.alias)

    def check(self, **kwargs: Any) -> list[Any]:
        """Return the system checks' messages about this alias."""
        try:
            checks = importlib.import_module("jobqueue.checks")
        except ModuleNotFoundError as error:
            if error.name != "jobqueue.checks":
                raise
            return []
        return list(checks.check_backend(self))


class _Double(_TakesDelays):
    """What the tolerant doubles share."""

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, {"QUEUES": [], **params})

    def enqueue_many(self, task: Any, calls: Iterable[Pair]) -> list[Any]:
        """Enqueue each call, a pair (args, kwargs)."""
        return [self.enqueue(task, list(args), dict(kwargs)) for args, kwargs in calls]


class ImmediateBackend(_Double, compat.ImmediateBackend):
    """Runs each task where it is enqueued, also one with a run_after."""


class DummyBackend(_Double, compat.DummyBackend):
    """Remembers what was enqueued, in `results`, and runs nothing."""
