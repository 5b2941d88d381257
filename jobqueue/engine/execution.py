"""Running one claimed job: atomic (the default for ``def``), not atomic, or ``async def``.

An atomic task: ``atomic()`` → our own first on_commit callback → the function → the finish with
guard, result and attempt row → COMMIT. The planted flag is the only proof of success.

What a process leaves behind that dies or freezes …
- anywhere before COMMIT: nothing; the server rolls back when the session ends. A frozen process's
  session is ended by whoever declares it dead; between finish and COMMIT the server ends it
  itself (idle time-out), so that the row does not stay locked.
- after COMMIT: a succeeded job with its effects, and no on_commit callbacks.
A thawed process meets the guard: its finish raises on the server and its writes roll back.

An atomic task that ran no statement has no effects to bind: its finish goes with the next batch,
and its block may serve the thread's next job (`job_block`).
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.compat import signal_is_heard, task_started
from jobqueue.conf import LONG_TRANSACTION_SECONDS, MAX_RERUNS, RERUN_SECONDS, Options, job_options
from jobqueue.engine.completion import announce_started, resolve_unknown_commit
from jobqueue.engine.context import JobContext
from jobqueue.engine.environment import Environment
from jobqueue.engine.hygiene import clean_connections, drop_gone, open_transactions
from jobqueue.engine.interrupts import arm, disarm, interruption, meaning_of
from jobqueue.engine.job_block import JobBlock, kept_connection, leave_kept_block
from jobqueue.engine.middleware import Middleware
from jobqueue.engine.outcomes import (
    Ended,
    Failure,
    decide_failure,
    decide_unrunnable,
    put_off,
)
from jobqueue.engine.proof import (
    CommitProof,
    Witness,
    asks_to_run_again,
    backend_pid,
    is_connection_lost,
)
from jobqueue.engine.run_state import RunState, Stop, current_run
from jobqueue.events import emit
from jobqueue.exceptions import (
    InvalidArgument,
    JobQueueError,
    LeaseLost,
    ResultNotSerializable,
    TransactionLeftOpen,
    UnsupportedType,
)
from jobqueue.payload import decode_arguments, encode_value
from jobqueue.storage import storage_for
from jobqueue.storage.busy import is_busy
from jobqueue.storage.connections import discard
from jobqueue.storage.records import Claim
from jobqueue.tasks import JobTask

logger = logging.getLogger("jobqueue")


@dataclass(frozen=True, slots=True)
class Run:
    """A claim with all that is needed to run it."""

    claim: Claim
    task: JobTask[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    context: JobContext
    state: RunState
    environment: Environment
    middleware: Middleware

    @property
    def limit_seconds(self) -> float:
        """How long the code may run before it is interrupted."""
        soft = self.task.soft_timeout
        return self.claim.timeout if soft is None else min(soft, self.claim.timeout)

    def call(self) -> Any:
        """Run the function inside the middleware, in a fresh ``contextvars.Context``.

        Only meanwhile the code can be interrupted. An atomic task that was is not forgiven: the
        session of its transaction is closed.
        """
        own = contextvars.Context()
        own.run(current_run.set, self.state)
        arm(self.state)
        try:
            value = own.run(self.middleware.run, self.context, self._function)
        finally:
            try:
                disarm(self.state)
            finally:
                self.environment.leave_if_forked()
        if self.state.stopped is not None and self.state.in_atomic_task:
            raise interruption(self.state)
        return value

    async def call_async(self) -> Any:
        """Await the coroutine function inside the middleware, in the task's own context.

        Only meanwhile it can be cancelled from outside.
        """
        current_run.set(self.state)
        self.state.target = asyncio.current_task()
        try:
            return await self.middleware.run_async(self.context, self._coroutine)
        finally:
            self.state.target = None
            self.environment.leave_if_forked()

    def _function(self) -> Any:
        if self.task.takes_context:
            return self.task.func(self.context, *self.args, **self.kwargs)
        return self.task.func(*self.args, **self.kwargs)

    async def _coroutine(self) -> Any:
        if self.task.takes_context:
            return await self.task.func(self.context, *self.args, **self.kwargs)
        return await self.task.func(*self.args, **self.kwargs)


def prepare(
    claim: Claim, task: JobTask[..., Any], environment: Environment, middleware: Middleware
) -> Run | Ended:
    """Return the run of `claim`, or how it ended because its row cannot be decoded."""
    now = time.monotonic()
    try:
        args, kwargs = decode_arguments(claim.arguments)
    except InvalidArgument as error:
        options = job_options(claim.backend, environment.options)
        failure = decide_unrunnable(claim, error, options)
        return Ended(claim, now, now, failure=failure)
    state = RunState(claim, environment, in_atomic_task=task.atomic and not task.is_async)
    return Run(claim, task, args, kwargs, JobContext(state), state, environment, middleware)


def broken(claim: Claim, error: BaseException) -> Ended:
    """Return the end of a claim that our own code failed to run: a failure like any other.

    Never raises, whatever `error` is: it keeps a slot alive, and its job from staying held.
    """
    with suppress(BaseException):
        logger.error("The run of job %s broke", claim.id, exc_info=error)
    now = time.monotonic()
    failure = decide_failure(claim, error, None, job_options(claim.backend, Options()))
    return Ended(claim, now, now, failure=failure)


def run_sync(run: Run, *, has_next: bool = False) -> Ended:
    """Run a ``def`` task in this thread; never raises. The thread's connections come back clean.

    has_next: the thread will run another at once, for which an untouched block may stay open.
    """
    connection = connections[run.environment.options.database]
    if not run.task.atomic or signal_is_heard(task_started):
        leave_kept_block()
    heard = announce_started(run.claim)  # before the transaction: receivers are no part of the job
    if not _in_test(run.environment):
        clean_connections() if heard else drop_gone()
    try:
        if run.task.atomic:
            return _run_atomic(run, connection, has_next)
        return _run_plain(run, run.call)
    except BaseException as error:  # what decides about an error of the job's met another
        return broken(run.claim, error)
    finally:
        if not _in_test(run.environment):
            clean_connections(kept_connection())


async def run_async(run: Run) -> Ended:
    """Await an ``async def`` task; never raises, also not SystemExit or KeyboardInterrupt, which
    would end the event loop.
    """
    started = run.state.started
    try:
        if signal_is_heard(task_started):
            await sync_to_async(announce_started)(run.claim)
        value = await run.call_async()
        return _success(run, value)
    except BaseException as error:
        try:
            return _ended_with(run, error, started)
        except BaseException as worse:
            return broken(run.claim, worse)


# --- not atomic ----------------------------------------


def _run_plain(run: Run, call: Callable[[], Any]) -> Ended:
    try:
        return _success(run, call())
    except BaseException as error:
        return _ended_with(run, error, run.state.started)


def _success(run: Run, value: Any) -> Ended:
    """Return the end of code that returned `value`: to be finished with the next batch."""
    started = run.state.started
    if run.state.committed:
        return Ended(run.claim, started, time.monotonic(), committed=True)
    if not run.task.is_async and not _in_test(run.environment) and open_transactions():
        raise TransactionLeftOpen(_LEFT_OPEN)
    text = _encoded(run, value)
    return Ended(run.claim, started, time.monotonic(), result=text)


def _ended_with(run: Run, error: BaseException, started: float) -> Ended:
    """Return the end of code that raised `error`."""
    now = time.monotonic()
    if run.state.committed:
        logger.error(
            "Job %s raised after context.commit(); it has succeeded.", run.claim.id, exc_info=error
        )
        return Ended(run.claim, started, now, committed=True)
    if _has_lost(run, error) or run.state.stopped is Stop.ABANDONED:
        return Ended(run.claim, started, now)
    error = meaning_of(run.state, error)
    failure = decide_failure(
        run.claim, error, run.task.retry, run.state.options, run.state.cancel_reason
    )
    _forget_frames(error)
    return Ended(run.claim, started, now, failure=failure)


# --- atomic ----------------------------------------


@dataclass(slots=True)
class _Trial:
    """One pass through an atomic task: how far it came, and what stopped it."""

    proof: CommitProof
    phase: str = "begin"  # run, finish, commit
    session: Any = None
    pid: int | None = None
    result: str | None = None
    deferred: bool = False
    error: BaseException | None = None


def _run_atomic(run: Run, connection: BaseDatabaseWrapper, has_next: bool) -> Ended:
    """Run an atomic task; again at once, uncharged, where the database asks for it."""
    for rerun in range(MAX_RERUNS + 1):
        trial = _try_once(run, connection, has_next)
        verdict = _judge(run, trial, connection, rerun)
        if verdict is not None:
            return verdict
        # Those that met each other once meet again if both come back at once.
        time.sleep(random.uniform(0.0, RERUN_SECONDS * 2**rerun))
        emit("job.rerun", job=run.claim.id, fence=run.claim.fence, error=repr(trial.error)[:200])
        args, kwargs = decode_arguments(run.claim.arguments)  # the last pass may have changed them
        run = replace(run, args=args, kwargs=kwargs)
    raise AssertionError("unreachable: the last rerun is always judged")


def _try_once(run: Run, connection: BaseDatabaseWrapper, has_next: bool) -> _Trial:
    trial = _Trial(CommitProof())
    witness = Witness()
    block = JobBlock(connection, trial.proof, witness)
    try:
        with block:
            trial.phase = "run"
            depth = len(connection.savepoint_ids)
            trial.session, trial.pid = connection.connection, backend_pid(connection)
            value = run.call()
            _refuse_open_blocks(connection, depth, run.environment)
            trial.result = _encoded(run, value)
            trial.phase = "finish"
            trial.deferred = _is_untouched(connection)
            if trial.deferred:
                is_over = True  # there is nothing to commit
            else:
                storage = storage_for(connection, run.environment.options)
                is_over = storage.finish_and_commit(run.claim, trial.result, run.state.age_seconds)
            trial.phase = "commit"
            if is_over and has_next and block.is_clean:
                block.keep()
        if block.is_nested:
            trial.proof.plant()  # the released savepoint is the proof
    except BaseException as error:
        has_ended = trial.phase in ("finish", "commit")
        trial.error = witness.cause_of(error) if has_ended else error
    _warn_if_long(run)
    return trial


def _judge(run: Run, trial: _Trial, connection: BaseDatabaseWrapper, rerun: int) -> Ended | None:
    """Return how the trial ended, None if the job is to be run again at once."""
    claim, started, now = run.claim, run.state.started, time.monotonic()
    error = trial.error
    if trial.proof.planted:
        if error is not None:
            logger.error("An on_commit callback of job %s failed", claim.id, exc_info=error)
        if trial.deferred:
            return Ended(claim, started, now, result=trial.result)
        return Ended(claim, started, now, committed=True)
    if _has_lost(run, error):
        return _after_lease_lost(run, rerun)
    if run.state.stopped is not None:  # before the finish began; its sessions were closed for it
        return _ended_with(run, error or _rolled_back(), started)
    last = rerun >= MAX_RERUNS
    if error is not None and is_connection_lost(error, connection.vendor, trial.session):
        verdict = resolve_unknown_commit(run.environment, claim, trial.pid)
        discard(connection)
        if verdict == "committed":
            return Ended(claim, started, now, committed=True)
        if verdict == "lease lost":
            return Ended(claim, started, now)
        return _ended_with(run, error, started) if last else None
    if error is not None and trial.phase == "begin" and is_busy(error):
        # SQLite: each try has waited for the write lock as long as the connection may.
        return (
            Ended(claim, started, now, failure=put_off(error, run.state.options)) if last else None
        )
    if error is not None and trial.phase != "run" and asks_to_run_again(error):
        return _ended_with(run, error, started) if last else None
    if connection.in_atomic_block and not _in_test(run.environment):
        discard(connection)  # a block that the job entered by hand and never left
    return _ended_with(run, error or _rolled_back(), started)


def _has_lost(run: Run, error: BaseException | None) -> bool:
    """Return whether the guard of this very run has failed.

    A job can raise LeaseLost of itself: a failure, or it would run again uncharged for ever.
    """
    return isinstance(error, LeaseLost) and error.run == (run.claim.id, run.claim.fence)


def _after_lease_lost(run: Run, rerun: int) -> Ended:
    """Where an old session could not be ended, its COMMIT may have won against our re-run."""
    if rerun and not run.environment.direct:
        verdict = resolve_unknown_commit(run.environment, run.claim, None)
        if verdict == "committed":
            return Ended(run.claim, run.state.started, time.monotonic(), committed=True)
    return Ended(run.claim, run.state.started, time.monotonic())


_LEFT_OPEN = (
    "The task left a transaction open that it had begun by hand; use transaction.atomic() as a "
    "decorator or with a `with` statement. Its writes were rolled back."
)


def _refuse_open_blocks(
    connection: BaseDatabaseWrapper, depth: int, environment: Environment
) -> None:
    if len(connection.savepoint_ids) != depth or not connection.in_atomic_block:
        raise TransactionLeftOpen(_LEFT_OPEN)
    if not _in_test(environment) and open_transactions() != [connection]:
        raise TransactionLeftOpen(_LEFT_OPEN)


def _rolled_back() -> BaseException:
    return JobQueueError(
        "The job's transaction was rolled back without an exception (set_rollback?), so nothing "
        "of it was committed."
    )


def _is_untouched(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the open transaction has sent no statement and holds no foreign callback.

    psycopg sends BEGIN with the first statement: an idle session has done nothing since.
    """
    info = getattr(connection.connection, "info", None)
    if info is None or connection.needs_rollback or len(connection.run_on_commit) != 1:
        return False
    return int(info.transaction_status) == 0


def _encoded(run: Run, value: Any) -> str:
    """Return the result as JSON text; a coroutine nobody awaited is closed and refused."""
    if value is None:
        return "null"
    try:
        return encode_value(value, run.state.options.max_result_bytes)
    except (UnsupportedType, InvalidArgument, RecursionError) as error:
        close = getattr(value, "close", None)
        if callable(close) and hasattr(value, "cr_frame"):
            close()
        raise ResultNotSerializable(str(error) or type(error).__name__) from error


# --- around a job ----------------------------------------


def _in_test(environment: Environment) -> bool:
    return environment.test_connection is not None


def _warn_if_long(run: Run) -> None:
    seconds = run.state.age_seconds
    if seconds >= LONG_TRANSACTION_SECONDS:
        leave_kept_block()  # what a subscriber writes is no part of the next job
        emit(
            "job.long_transaction",
            level=logging.WARNING,
            job=run.claim.id,
            task=run.claim.task,
            seconds=round(seconds, 1),
            way_out="atomic=False and context.commit()",
        )


def _forget_frames(error: BaseException) -> None:
    """Drop the frames (and the locals they hold) of an error that is stored as text now."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        with suppress(BaseException):  # a class of the project's may refuse anything
            BaseException.with_traceback(one, None)  # past a __setattr__ that is frozen
            todo += [one.__cause__, one.__context__]
            if isinstance(one, BaseExceptionGroup):
                todo += one.exceptions


__all__ = ["Failure", "Run", "broken", "prepare", "run_async", "run_sync"]
