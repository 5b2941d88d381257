"""Running due jobs where a test stands: real rows and the engine's own run, on Django's connection.

    order = client.post("/orders/", ...)
    report = run_due()                               # what is ready, and what that enqueues
    assert len(report.succeeded) == 2

    run_due(raise_errors=True)                       # an error of a task is the test's error
    run_due(advance=timedelta(days=3))               # as if three days had passed

For a TestCase as well as a TransactionTestCase: no connection is closed, and everything happens in
the test's own transaction if it has one. What that changes:

- on_commit callbacks run only inside ``captureOnCommitCallbacks(execute=True)``, as always in a
  TestCase;
- a step of an atomic task that fails is rolled back with it; in production its record stays;
- a task with atomic=False that breaks the test's transaction by a database error loses all its
  writes, not only those of the failed statement;
- time-outs and limits are not enforced (jobs run one after the other), and nobody reaps.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue import __version__
from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import Options, options_for
from jobqueue.engine.completion import flush
from jobqueue.engine.environment import Environment
from jobqueue.engine.execution import run_async, run_sync
from jobqueue.engine.hygiene import is_broken
from jobqueue.engine.loading import load_result
from jobqueue.engine.log_capture import capturing
from jobqueue.engine.middleware import Middleware
from jobqueue.engine.outcomes import Ended, Failure
from jobqueue.engine.registry import autodiscover, registry
from jobqueue.engine.reports import Reports
from jobqueue.engine.runs import prepare
from jobqueue.engine.sweeps import expire_due
from jobqueue.exceptions import JobQueueError, TransactionLeftOpen
from jobqueue.ids import new_identity
from jobqueue.results import JobResult
from jobqueue.states import CHARGED, State
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.records import Claim, NewWorker
from jobqueue.storage.rows import by_urgency

MOST_RUNS = 1_000
"""Runs of one `run_due` without a limit: more are a job that enqueues itself for ever."""
PROMOTE_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class RunReport:
    """What `run_due` did.

    jobs: the result of each run, in order, as it was right after that run. A job that ran twice
    is in it twice.
    """

    jobs: tuple[JobResult[..., Any], ...] = ()

    @property
    def succeeded(self) -> list[JobResult[..., Any]]:
        """The runs that succeeded."""
        return [job for job in self.jobs if job.job_state is State.SUCCEEDED]

    @property
    def failed(self) -> list[JobResult[..., Any]]:
        """The runs that failed, whether the job is retried or dead."""
        return [job for job in self.jobs if job.job_state in (State.RETRYING, State.DEAD)]

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.jobs)


def run_due(
    *,
    alias: str = DEFAULT_TASK_BACKEND_ALIAS,
    queues: Collection[str] | None = None,
    limit: int | None = None,
    until_empty: bool = True,
    advance: timedelta = timedelta(0),
    raise_errors: bool = False,
) -> RunReport:
    """Run the due jobs of TASKS alias `alias`, most urgent first; return what became of them.

    queues: names; None for all. limit: runs at most this many. until_empty: run also what becomes
    due meanwhile, such as jobs that jobs enqueue. advance: run also what is due within this time
    (scheduled jobs, retries); what fails in this call is not run again by it.
    raise_errors: let the first error of a task reach the test, after it was recorded.

    Raise JobQueueError after a thousand runs without a `limit`.
    """
    options = options_for(alias)
    autodiscover(options)
    connection = connections[options.database]
    storage = storage_for(connection, options)
    expire_due(storage)
    _promote(storage, datetime.now(UTC) + advance if advance else None)
    jobs: list[JobResult[..., Any]] = []
    with _worker(alias, storage, options) as runner:
        for claim in runner.claims(queues, limit, until_empty):
            failure = runner.run(claim)
            jobs.append(load_result(claim.id, alias))
            if raise_errors and failure is not None:
                runner.raise_error(failure)
    return RunReport(tuple(jobs))


class _Runner:
    """A worker without a process: claims jobs and runs them here."""

    def __init__(self, environment: Environment, storage: Storage) -> None:
        self._environment = environment
        self._storage = storage
        self._middleware = _Watching(environment.options.middleware)
        self._tasks = {name: registry.get(name) for name in registry.names()}

    def claims(
        self, queues: Collection[str] | None, limit: int | None, until_empty: bool
    ) -> Iterator[Claim]:
        """Yield claims: one after the other, or all that are ready now."""
        most = MOST_RUNS if limit is None else limit
        count = 0
        if not until_empty:
            yield from self._claim(queues, most)
            return
        while count < most and (claims := self._claim(queues, 1)):
            count += 1
            yield claims[0]
            _promote(self._storage, None)
        if limit is None and count == most:
            raise JobQueueError(
                f"run_due() has run {most:,} jobs and there may be more: does a job enqueue "
                "itself? Give a limit, or until_empty=False."
            )

    def run(self, claim: Claim) -> Failure | None:
        """Run one claim and write down how it ended; return the failure of its attempt, if any."""
        self._middleware.error = None
        with _savepoint_for(self._environment.test_connection):
            ended = self._execute(claim)
        flush(self._storage, [ended], self._environment)
        self._write_reports()
        failure = ended.failure
        return failure if failure and failure.outcome in CHARGED else None

    def _write_reports(self) -> None:
        reports = self._environment.reports
        if reports is not None and not is_broken(self._storage.connection):
            while batch := reports.take():
                batch.write(self._storage)

    def raise_error(self, failure: Failure) -> None:
        """Raise what the task raised; else (a result JSON cannot hold, …) what was recorded."""
        if self._middleware.error is not None:
            raise self._middleware.error.with_traceback(self._middleware.traceback)
        assert failure.error is not None
        raise JobQueueError(f"{failure.error.class_path}: {failure.error.message}")

    def _claim(self, queues: Collection[str] | None, limit: int) -> list[Claim]:
        names = list(self._tasks)
        live = [q for q in self._storage.live_queues() if queues is None or q in queues]
        storage, identity = self._storage, self._environment.identity
        claims, limited = storage.claim_beside_limited(identity, live, names, limit)
        if not claims and not limited:
            claims = storage.claim_alone(identity, live, names)
            limited = [] if claims else storage.find_limited(live, names, 1, alone=True)
        return by_urgency(claims + storage.claim_chosen(identity, limited))

    def _execute(self, claim: Claim) -> Ended:
        run = prepare(claim, self._tasks[claim.task], self._environment, self._middleware)
        if isinstance(run, Ended):
            return run
        if run.task.is_async:
            return contextvars.Context().run(async_to_sync(run_async), run)
        return run_sync(run)


class _Watching(Middleware):
    """The project's middleware, with an eye on what a job raises through it."""

    error: BaseException | None = None
    traceback: Any = None

    def run(self, context: Any, function: Any) -> Any:
        """See Middleware.run."""
        try:
            return super().run(context, function)
        except BaseException as error:
            self.error, self.traceback = error, error.__traceback__
            raise

    async def run_async(self, context: Any, function: Any) -> Any:
        """See Middleware.run_async."""
        try:
            return await super().run_async(context, function)
        except BaseException as error:
            self.error, self.traceback = error, error.__traceback__
            raise


@contextmanager
def _worker(alias: str, storage: Storage, options: Options) -> Iterator[_Runner]:
    """A worker's row for the time of the block: a claim is only for the living."""
    from jobqueue.models import Worker

    identity = new_identity()
    storage.register_worker(
        NewWorker(
            id=identity,
            kind="worker",
            name="run_due",
            host="",
            pid=os.getpid(),
            backend=alias,
            version=__version__,
            lease_seconds=options.lease_seconds,
            tasks=tuple(registry.names()),
            slots=1,
        )
    )
    environment = Environment(
        identity,
        options,
        test_connection=storage.connection,
        reports=Reports(options.log_lines),
    )
    try:
        with capturing():
            yield _Runner(environment, storage)
    finally:
        if not is_broken(storage.connection):
            Worker.objects.using(options.database).filter(pk=identity).delete()


@contextmanager
def _savepoint_for(connection: BaseDatabaseWrapper | None) -> Iterator[None]:
    """Keep a job that breaks the test's transaction from breaking the test."""
    if connection is None or not connection.in_atomic_block:
        yield
        return
    block: Any = transaction.atomic(using=connection.alias)
    block._from_testcase = True  # as Django marks its own: a durable block may begin inside
    with block:
        blocks: list[Any] = connection.atomic_blocks
        depth = len(blocks)
        yield
        while len(blocks) > depth:  # entered by hand and not left
            blocks[-1].__exit__(TransactionLeftOpen, None, None)
        if is_broken(connection):
            transaction.set_rollback(True, using=connection.alias)


def _promote(storage: Storage, now: datetime | None) -> None:
    while len(storage.promote(PROMOTE_LIMIT, now)) == PROMOTE_LIMIT:
        pass
