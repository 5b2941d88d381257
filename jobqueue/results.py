"""The result of a job: Django's TaskResult, and what a job knows beyond it.

    result = send_receipt.enqueue(order.pk)
    result.wait(timeout=30).return_value
    await result.wait_async(timeout=30)

`job_state` is the job's own state (see `jobqueue.states.State`), of which Django's `status` is
the coarse form: SCHEDULED, READY, BLOCKED and RETRYING are READY; DEAD and CANCELLED are FAILED.
`reason` says why a job is blocked, dead or cancelled. `already_enqueued` is True where an enqueue
made no job, as another held its unique key: then this is the result of that one.

`progress` and `log_lines` are what the job says of itself while it runs; each asks the database.

`worker_ids` has one entry for each attempt that was charged or succeeded, and one for the attempt
now running; `errors` one for each attempt that failed, timed out or lost its worker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.transaction import TransactionManagementError

from jobqueue.compat import (
    TaskResult,
    TaskResultStatus,
)
from jobqueue.states import FINISHED, State

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

if TYPE_CHECKING:

    class _FrameworkResult[**P, R](TaskResult[P, R]):
        """`TaskResult` is generic for type checkers and in the backport, not in Django itself."""

else:

    class _FrameworkResult[**P, R](TaskResult):
        __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """How far the newest attempt that said anything has come. total None: not known."""

    done: float
    total: float | None
    message: str
    reported_at: datetime
    fence: int

    @property
    def fraction(self) -> float | None:
        """0 … 1; None where the total is not known."""
        return min(self.done / self.total, 1.0) if self.total else None

    def __str__(self) -> str:
        """Return for example "120 of 500 (24 %), reading orders"."""
        text = _amount(self.done) if self.total is None else self._share()
        return f"{text}, {self.message}" if self.message else text

    def _share(self) -> str:
        assert self.total is not None
        percent = "" if self.fraction is None else f" ({self.fraction:.0%})".replace("%", " %")
        return f"{_amount(self.done)} of {_amount(self.total)}{percent}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLogLine:
    """A line that a job logged: `number` within the run that `fence` names."""

    fence: int
    number: int
    logged_at: datetime
    level: int
    logger: str
    message: str

    @property
    def level_name(self) -> str:
        return logging.getLevelName(self.level)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult[**P, R](_FrameworkResult[P, R]):  # type: ignore[misc] # frozen, unlike in its stub
    """A job as it was when it was read; `refresh()` reads it again."""

    job_state: State
    reason: str = ""
    already_enqueued: bool = False

    @property
    def progress(self) -> JobProgress | None:
        """How far the job has come, read now: a row of its own; None if it never said."""
        backend: Any = self.task.get_backend()
        found: JobProgress | None = backend.job_progress(self.id)
        return found

    @property
    def log_lines(self) -> list[JobLogLine]:
        """What the job has logged, over all its attempts, read now."""
        backend: Any = self.task.get_backend()
        found: list[JobLogLine] = backend.job_log(self.id)
        return found

    def refresh(self) -> None:
        """Read the job again. Raise TaskResultDoesNotExist if it has been pruned."""
        self._take(self.task.get_backend().get_result(self.id))

    async def arefresh(self) -> None:
        """See refresh()."""
        self._take(await self.task.get_backend().aget_result(self.id))

    def _take(self, fresh: TaskResult[..., Any]) -> None:
        for field in fields(fresh):
            if field.name not in ("task", "already_enqueued"):
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
        backend: Any = self.task.get_backend()
        if backend.job_state(self.id) in FINISHED:
            self.refresh()
            return True
        if timeout is None and connections[backend.job_options.database].in_atomic_block:
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


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.2f}"


def build(**values: Any) -> JobResult[..., Any]:
    """Return a result of values that came out of JSON: without the constructor's normalizing."""
    result: JobResult[..., Any] = object.__new__(JobResult)
    for name, value in values.items():
        object.__setattr__(result, name, value)
    return result
