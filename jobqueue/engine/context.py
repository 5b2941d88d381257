"""What a task may know and do about its own run: the ``context`` parameter.

It is a ``TaskContext`` of Django's framework, and more. Everything in it uses the identity and
fence of the claim it was made for: a zombie's context is refused by the guard.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from jobqueue.compat import TaskContext, task_backends
from jobqueue.engine.blocks import guarded_block
from jobqueue.engine.loading import load_tick
from jobqueue.engine.run_state import RunState
from jobqueue.engine.steps import run_step
from jobqueue.exceptions import Cancel, LeaseLost, StepError
from jobqueue.payload import encode_value

logger = logging.getLogger("jobqueue.job")
if logger.level == logging.NOTSET:
    # What a task says through its context is kept, however quiet the console is to be.
    logger.setLevel(logging.INFO)


class JobContext(TaskContext):  # type: ignore[type-arg] # generic for type checkers only
    """The run of one job, as its task sees it."""

    __slots__ = ("_result", "_run", "_tick")

    _run: RunState
    _result: Any
    _tick: tuple[datetime | None] | None

    def __init__(self, run: RunState) -> None:
        # TaskContext is a frozen dataclass; its one field is served lazily by `task_result`.
        object.__setattr__(self, "_run", run)  # the other slots are filled when asked for

    @property
    def task_result(self) -> Any:  # type: ignore[override]
        """Django's TaskResult of this job, read from the database when first asked for."""
        if not hasattr(self, "_result"):
            result = task_backends[self._run.claim.backend].get_result(str(self._run.claim.id))
            object.__setattr__(self, "_result", result)
            return result
        return self._result

    @property
    def attempt(self) -> int:
        """The number of this attempt within the job's budget, from 1."""
        return self._run.claim.failures + 1

    @property
    def job_id(self) -> UUID:
        return self._run.claim.id

    @property
    def backend(self) -> str:
        """The TASKS alias that the job was enqueued through."""
        return self._run.claim.backend

    @property
    def fence(self) -> int:
        """The fencing token of this run; a later run of the same job has a greater one."""
        return self._run.claim.fence

    @property
    def idempotency_key(self) -> str:
        """The key toward the outside world: the same over all attempts of this job."""
        return str(self._run.claim.id)

    @property
    def deadline(self) -> datetime:
        """When this attempt must be over, on the database's clock."""
        claim = self._run.claim
        return shown(claim.claimed_at + timedelta(seconds=claim.timeout))

    @property
    def is_cancelled(self) -> bool:
        """Whether this run should stop: somebody asked for it, or it has lost the job."""
        return self._run.cancel_reason is not None or self._is_lost

    @property
    def _is_lost(self) -> bool:
        return self._run.abandoned or not self._run.environment.is_alive()

    def stop_if_cancelled(self) -> None:
        """Raise what ends this run if `is_cancelled`: `Cancel`, or `LeaseLost`."""
        if self._is_lost:
            claim = self._run.claim
            message = "The job was taken from this run, so nothing of it can be committed."
            raise LeaseLost(message, run=(claim.id, claim.fence))
        if self._run.cancel_reason is not None:
            raise Cancel(self._run.cancel_reason)

    @property
    def tick(self) -> datetime | None:
        """The instant of its schedule that this job stands for; None without a schedule.

        None also if an operator started it by hand. Read from the database when first asked for.
        """
        if not hasattr(self, "_tick"):
            found = load_tick(self._run.claim.id, self._run.environment.options.database)
            object.__setattr__(self, "_tick", (found,))
        return self._tick[0] if self._tick else None

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose records carry the job's id; they are also the run's log lines."""
        return logging.LoggerAdapter(logger, {"job_id": str(self._run.claim.id)})

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Say how far this run has come, for whoever looks at the job.

        done, total: numbers from 0, in any unit; total None: not known. message: up to 255 bytes.
        Costs next to nothing, so call it in the innermost loop: the last value is written, some
        times a second, on a connection of its own. Raise InvalidArgument for what is no number.
        """
        reports = self._run.environment.reports
        if reports is not None:
            reports.progress(self._run, done, total, message)

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        atomic: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run `function` once for this job and return its recorded result, also in later attempts.

        A crash between its effect and its record repeats it, with the same key
        (``context.step_key(name)``): give that key to the outside world. With ``atomic=True`` (in
        a task with atomic=False) its writes and the record are one transaction: exactly once.
        """
        return run_step(self._run, name, function, args, kwargs, atomic)

    def step_key(self, name: str) -> str:
        """Return the key of a step toward the outside world: the same over all attempts."""
        return f"{self._run.claim.id}:{name}"

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Open a transaction that first locks the job's row with the whole guard.

        Raise LeaseLost if this run no longer owns the job. Keep it short: the row stays locked.
        """
        with guarded_block(self._run):
            yield

    def commit(self, result: Any = None) -> None:
        """Finish the job with `result` in the open ``with context.atomic():`` block.

        To be called last in it: the block's writes and the job's completion commit together,
        exactly once. After the block the job has succeeded, whatever the task does next.
        """
        if self._run.in_atomic_task:
            raise StepError("An atomic task commits when it returns; return the result instead.")
        if not self._run.in_block:
            raise StepError("Call context.commit() inside `with context.atomic():`.")
        limit = self._run.options.max_result_bytes
        self._run.commit_result = encode_value(result, limit)

    def __repr__(self) -> str:
        claim = self._run.claim
        return f"<JobContext {claim.task} {claim.id} fence {claim.fence}>"


def shown(moment: datetime) -> datetime:
    """Return `moment` as Django shows times under these settings: naive without USE_TZ."""
    return moment if settings.USE_TZ else timezone.make_naive(moment)
