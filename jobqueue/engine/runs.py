"""One run of a claimed job: all that is needed to run it, and what its code came to."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jobqueue.conf import job_options
from jobqueue.engine.context import JobContext
from jobqueue.engine.environment import Environment
from jobqueue.engine.hygiene import open_transactions
from jobqueue.engine.interrupts import arm, disarm, interruption, meaning_of
from jobqueue.engine.middleware import Middleware
from jobqueue.engine.outcomes import Ended, decide_failure, decide_unrunnable
from jobqueue.engine.run_state import RunState, Stop, current_run
from jobqueue.exceptions import (
    InvalidArgument,
    LeaseLost,
    ResultNotSerializable,
    TransactionLeftOpen,
    UnsupportedType,
)
from jobqueue.payload import decode_arguments, encode_value
from jobqueue.storage.records import Claim
from jobqueue.tasks import JobTask

logger = logging.getLogger("jobqueue")


@dataclass(slots=True)
class Run:
    """A claim with all that is needed to run it. Never changed; freezing it would cost each job."""

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


# --- what the code came to ----------------------------------------


LEFT_OPEN = (
    "The task left a transaction open that it had begun by hand; use transaction.atomic() as a "
    "decorator or with a `with` statement. Its writes were rolled back."
)


def success(run: Run, value: Any) -> Ended:
    """Return the end of code that returned `value`: to be finished with the next batch."""
    started = run.state.started
    if run.state.committed:
        return Ended(run.claim, started, time.monotonic(), committed=True)
    if not run.task.is_async and not in_test(run.environment) and open_transactions():
        raise TransactionLeftOpen(LEFT_OPEN)
    text = encoded(run, value)
    return Ended(run.claim, started, time.monotonic(), result=text)


def ended_with(run: Run, error: BaseException, started: float) -> Ended:
    """Return the end of code that raised `error`."""
    now = time.monotonic()
    if run.state.committed:
        logger.error(
            "Job %s raised after context.commit(); it has succeeded.", run.claim.id, exc_info=error
        )
        return Ended(run.claim, started, now, committed=True)
    if has_lost(run, error) or run.state.stopped is Stop.ABANDONED:
        return Ended(run.claim, started, now)
    error = meaning_of(run.state, error)
    failure = decide_failure(
        run.claim, error, run.task.retry, run.state.options, run.state.cancel_reason
    )
    _forget_frames(error)
    return Ended(run.claim, started, now, failure=failure)


def has_lost(run: Run, error: BaseException | None) -> bool:
    """Return whether the guard of this very run has failed.

    A job can raise LeaseLost of itself: a failure, or it would run again uncharged for ever.
    """
    return isinstance(error, LeaseLost) and error.run == (run.claim.id, run.claim.fence)


def encoded(run: Run, value: Any) -> str:
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


def in_test(environment: Environment) -> bool:
    """Return whether Django's connection is a test's, whose transaction is none of ours."""
    return environment.test_connection is not None


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
