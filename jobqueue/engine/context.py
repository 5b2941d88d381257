"""What a task may know and do about its own run: the ``context`` parameter.

It is a ``TaskContext`` of Django's framework, and more. Everything in it uses the identity and
fence of the claim it was made for: a zombie's context is refused by the guard.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from jobqueue.compat import TaskContext, TaskResult, task_backends
from jobqueue.engine.blocks import guarded_block
from jobqueue.engine.environment import Environment
from jobqueue.engine.steps import run_step
from jobqueue.exceptions import StepError
from jobqueue.payload import encode_value
from jobqueue.storage.records import Claim

logger = logging.getLogger("jobqueue.job")


class JobContext(TaskContext):
    """The run of one job, as its task sees it."""

    __slots__ = ("_result", "abandoned", "claim", "commit_result", "committed", "environment",
                 "in_atomic_task", "in_block", "started")  # fmt: skip

    def __init__(self, claim: Claim, environment: Environment, in_atomic_task: bool) -> None:
        # TaskContext is a frozen dataclass whose one field is served lazily by `task_result`.
        for name, value in (
            ("claim", claim),
            ("environment", environment),
            ("in_atomic_task", in_atomic_task),
            ("in_block", False),
            ("commit_result", None),
            ("committed", False),
            ("abandoned", False),
            ("_result", None),
            ("started", time.monotonic()),
        ):
            object.__setattr__(self, name, value)

    @property
    def task_result(self) -> TaskResult:  # type: ignore[override]
        """Django's TaskResult of this job, read from the database when first asked for."""
        if self._result is None:
            result = task_backends[self.claim.backend].get_result(str(self.claim.id))
            object.__setattr__(self, "_result", result)
        return self._result  # type: ignore[no-any-return]

    @property
    def attempt(self) -> int:
        """The number of this attempt within the job's budget, from 1."""
        return self.claim.failures + 1

    @property
    def age_seconds(self) -> float:
        """Seconds since this attempt started, by the worker's monotonic clock."""
        return float(time.monotonic() - self.started)

    @property
    def job_id(self) -> UUID:
        return self.claim.id

    @property
    def fence(self) -> int:
        """The fencing token of this run; a later run of the same job has a greater one."""
        return self.claim.fence

    @property
    def idempotency_key(self) -> str:
        """The key toward the outside world: the same over all attempts of this job."""
        return str(self.claim.id)

    @property
    def deadline(self) -> datetime:
        """When this attempt must be over, on the database's clock."""
        return self.claim.claimed_at + timedelta(seconds=self.claim.timeout)

    @property
    def is_cancelled(self) -> bool:
        """Whether this run should stop: its lease is lost, or the job was taken from it."""
        return bool(self.abandoned) or not self.environment.is_alive()

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose records carry the job's id."""
        return logging.LoggerAdapter(logger, {"job_id": str(self.claim.id)})

    def step(
        self, name: str, function: Callable[..., Any], *args: Any, atomic: bool = False, **kwargs: Any
    ) -> Any:
        """Run `function` once for this job and return its recorded result, also in later attempts.

        A crash between its effect and its record repeats it, with the same key
        (``context.step_key(name)``): give that key to the outside world. With ``atomic=True`` (in
        a task with atomic=False) its writes and the record are one transaction: exactly once.
        """
        return run_step(self, name, function, args, kwargs, atomic)

    def step_key(self, name: str) -> str:
        """Return the key of a step toward the outside world: the same over all attempts."""
        return f"{self.claim.id}:{name}"

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Open a transaction that first locks the job's row with the whole guard.

        Raise LeaseLost if this run no longer owns the job. Keep it short: the row stays locked.
        """
        with guarded_block(self):
            yield

    def commit(self, result: Any = None) -> None:
        """Finish the job with `result` in the open ``with context.atomic():`` block.

        To be called last in it: the block's writes and the job's completion commit together,
        exactly once. After the block the job has succeeded, whatever the task does next.
        """
        if self.in_atomic_task:
            raise StepError("An atomic task commits when it returns; return the result instead.")
        if not self.in_block:
            raise StepError("Call context.commit() inside `with context.atomic():`.")
        limit = self.environment.options.max_result_bytes
        object.__setattr__(self, "commit_result", encode_value(result, limit))

    def __repr__(self) -> str:
        return f"<JobContext {self.claim.task} {self.claim.id} fence {self.claim.fence}>"

