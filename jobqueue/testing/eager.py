"""Eager mode: jobs run where they are enqueued, and what they carry goes through JSON.

Arguments and results are checked, encoded and decoded as in production (numbers as dict keys
become text, tuples become lists, a set is refused); so is the rule for what becomes of a job
that failed. A job runs in a fresh ``contextvars.Context``, inside MIDDLEWARE; an atomic one in
``atomic()``, which inside a TestCase or the caller's transaction is a savepoint. No connection is
closed, and nothing waits for a commit.

What eager mode does not do: no rows and no hints; no retries (a job that would be retried ends as
`retrying`); a job with a run_after in the future is remembered and not run; steps are kept only
while their job runs.
"""

from __future__ import annotations

import contextvars
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connections, transaction
from django.test import override_settings
from django.utils import timezone

from jobqueue import compat
from jobqueue.backend import JobQueueBackend
from jobqueue.conf import Options, jobqueue_aliases
from jobqueue.engine.context import shown
from jobqueue.engine.enqueue import Pair, new_jobs, warn_of_foreign_transaction
from jobqueue.engine.environment import Environment
from jobqueue.engine.loading import new_result
from jobqueue.engine.log_capture import capturing
from jobqueue.engine.middleware import Middleware
from jobqueue.engine.outcomes import Failure, decide_failure
from jobqueue.engine.reports import Reports
from jobqueue.engine.run_state import RunState, current_run
from jobqueue.exceptions import InvalidArgument, ResultNotSerializable, UnsupportedType
from jobqueue.ids import new_identity
from jobqueue.payload import decode_arguments, encode_value
from jobqueue.results import STATUS, JobResult
from jobqueue.states import CHARGED, FINISHED, WAITING, State
from jobqueue.storage.records import Claim, Inserted, NewJob
from jobqueue.tasks import JobTask
from jobqueue.testing.context import EagerContext
from jobqueue.testing.results import EagerResult
from jobqueue.testing.twins import find_twin, replaced, rescheduled
from jobqueue.unique import KEEP, REPLACE

_IDENTITY = new_identity()


@contextmanager
def eager(*, raise_errors: bool = False) -> Iterator[list[JobResult[..., Any]]]:
    """Run the jobs of all jobqueue aliases where they are enqueued; yield their results.

    raise_errors: let an exception of a task reach the code that enqueued it. Otherwise the job
    fails as in production, and its result has the error.
    """
    ours = jobqueue_aliases()
    path = f"{EagerBackend.__module__}.{EagerBackend.__qualname__}"
    tasks = {
        alias: {**params, "BACKEND": path} if alias in ours else params
        for alias, params in settings.TASKS.items()
    }
    before = EagerBackend.results, EagerBackend.raise_errors
    EagerBackend.results, EagerBackend.raise_errors = [], raise_errors
    try:
        with override_settings(TASKS=tasks):
            yield EagerBackend.results
    finally:
        EagerBackend.results, EagerBackend.raise_errors = before


class EagerBackend(JobQueueBackend):
    """A backend for tests: `eager()` puts it in place, or the TASKS setting of a test suite."""

    is_jobqueue = False

    results: ClassVar[list[JobResult[..., Any]]] = []
    """All jobs of this process; a test suite that names this backend clears it between tests."""
    raise_errors: ClassVar[bool] = False

    def make_jobs(
        self, task: JobTask[..., Any], calls: Iterable[Pair]
    ) -> list[JobResult[..., Any]]:
        """Return the results of the jobs of these calls, which have run."""
        jobs = new_jobs(task, calls, self.alias, self.job_options)
        warn_of_foreign_transaction(connections[self.job_options.database])
        return [self._make(task, job) for job in jobs]

    def _make(self, task: JobTask[..., Any], job: NewJob) -> JobResult[..., Any]:
        """Make one job and run it, unless its key is held; return its or its twin's result."""
        twin = find_twin(job, self.results)
        if twin is not None:
            self._change(task, twin, job)
            return twin.again()
        result = EagerResult.of(new_result(task, job, _as_inserted(job)), job)
        self.results.append(result)
        compat.task_enqueued.send_robust(sender=type(self), task_result=result)
        if job.expires_at is not None and job.expires_at <= datetime.now(UTC):
            _set(result, State.CANCELLED, finished_at=timezone.now(), reason="expired")
            self._send_finished(result)
        elif result.job_state is State.READY:
            self._run(task, job, result)
        return result

    def _change(self, task: JobTask[..., Any], twin: EagerResult, job: NewJob) -> None:
        """Let `job` change its twin by the rule of its task, if that one waits."""
        rule = None if task.unique is None else task.unique.on_conflict
        if twin.job_state not in WAITING or rule == KEEP:
            return
        if rule == REPLACE:
            values = replaced(twin, job)
        else:
            due = _as_inserted(job)
            values = rescheduled(twin, job, due.run_at, due.state == State.READY)
        _set(twin, values.pop("job_state"), **values)
        if twin.job_state is State.READY:
            self._run(twin.task, twin.job, twin)  # type: ignore[arg-type] # a JobTask

    def announce(self, results: list[JobResult[..., Any]]) -> None:
        """Do nothing: each job was announced before it ran."""

    def get_result(self, result_id: str) -> JobResult[..., Any]:
        """Return the result of a job of this process."""
        for result in self.results:
            if result.id == str(result_id):
                return result
        raise compat.TaskResultDoesNotExist(result_id)

    def job_state(self, result_id: str) -> State:
        """Return the state of a job of this process."""
        return self.get_result(result_id).job_state

    def _run(self, task: JobTask[..., Any], job: NewJob, result: EagerResult) -> None:
        started = timezone.now()
        _set(result, State.RUNNING, started_at=started, last_attempted_at=started)
        result.worker_ids.append(str(_IDENTITY))
        compat.task_started.send_robust(sender=type(self), task_result=result)
        reports = Reports(self.job_options.log_lines)
        try:
            with capturing():
                value = _executed(task, job, result, self.job_options, reports)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failure = decide_failure(_as_claim(job), error, task.retry, self.job_options)
            _record_failure(result, failure)
            self._send_finished(result)
            if self.raise_errors and failure.outcome in CHARGED:
                raise
        else:
            _set(result, State.SUCCEEDED, finished_at=timezone.now(), _return_value=value)
            self._send_finished(result)
        finally:
            result.keep(reports.take(), timezone.now())

    def _send_finished(self, result: JobResult[..., Any]) -> None:
        if result.is_finished:
            compat.task_finished.send_robust(sender=type(self), task_result=result)


def _executed(
    task: JobTask[..., Any],
    job: NewJob,
    result: JobResult[..., Any],
    options: Options,
    reports: Reports,
) -> Any:
    """Run the job; return its result as its readers will see it."""
    environment = Environment(
        _IDENTITY, options, test_connection=connections[options.database], reports=reports
    )
    run = RunState(_as_claim(job), environment, in_atomic_task=task.atomic)
    context = EagerContext(run, result)
    function = _bound(task, run.claim, context)
    middleware = Middleware(options.middleware)
    own = contextvars.Context()
    own.run(current_run.set, run)
    try:
        with _transaction(task, options):
            value = own.run(middleware.run, context, function)
            text = run.commit_result if run.committed else _encoded(value, options)
    except Exception:
        if not run.committed:
            raise
        text = run.commit_result  # what is raised after commit() does not undo it
    return json.loads(text or "null")


def _bound(task: JobTask[..., Any], claim: Claim, context: EagerContext) -> Callable[[], Any]:
    args, kwargs = decode_arguments(claim.arguments)
    leading = [context] if task.takes_context else []
    function = partial(task.func, *leading, *args, **kwargs)
    return async_to_sync(function) if task.is_async else function


def _transaction(task: JobTask[..., Any], options: Options) -> AbstractContextManager[None]:
    return transaction.atomic(using=options.database) if task.atomic else nullcontext()


def _encoded(value: Any, options: Options) -> str:
    try:
        return encode_value(value, options.max_result_bytes)
    except (UnsupportedType, InvalidArgument) as error:
        raise ResultNotSerializable(str(error)) from error


def _record_failure(result: JobResult[..., Any], failure: Failure) -> None:
    ended = timezone.now() if failure.state in FINISHED else None
    _set(result, failure.state, finished_at=ended, reason=failure.reason)
    if not failure.charged:
        result.worker_ids.pop()
    if failure.charged and failure.error is not None:
        error = compat.TaskError(
            exception_class_path=failure.error.class_path, traceback=failure.error.traceback
        )
        result.errors.append(error)


def _set(result: JobResult[..., Any], state: State, **values: Any) -> None:
    """Change a result, which is frozen for everybody else."""
    for name, value in {"job_state": state, "status": STATUS[state], **values}.items():
        object.__setattr__(result, name, value)


def _as_inserted(job: NewJob) -> Inserted:
    """Return what the database would make of `job`, by this process's clock."""
    now = datetime.now(UTC)
    run_at = job.run_at or now + timedelta(seconds=job.delay or 0)
    state = State.SCHEDULED if run_at > now else State.READY
    return Inserted(job.id, state, shown(run_at), shown(now))


def _as_claim(job: NewJob) -> Claim:
    return Claim(
        id=job.id,
        fence=1,
        worker=_IDENTITY,
        task=job.task,
        queue=job.queue,
        backend=job.backend,
        arguments=job.arguments,
        failures=0,
        max_attempts=job.max_attempts,
        suspicions=0,
        timeout=job.timeout,
        alone=False,
        claimed=time.time(),
        rank=0,
    )
