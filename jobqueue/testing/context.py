"""The context of an eager job: like a real one, but there is no row behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import transaction

from jobqueue.engine.context import JobContext
from jobqueue.engine.run_state import RunState
from jobqueue.exceptions import StepError
from jobqueue.payload import encode_value


class EagerContext(JobContext):
    """Remembers steps while the job runs; its blocks are transactions without a guard."""

    __slots__ = ("_steps",)

    _steps: dict[str, str]

    def __init__(self, run: RunState, result: Any) -> None:
        super().__init__(run)
        object.__setattr__(self, "_result", result)
        object.__setattr__(self, "_steps", {})

    @property
    def tick(self) -> None:
        """None: what runs where it is enqueued is no tick's job."""
        return None

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        atomic: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run `function` once for this job; return its result as JSON would record it."""
        if atomic and self._run.in_atomic_task:
            raise StepError("context.step(atomic=True) needs a task with atomic=False.")
        if name not in self._steps:
            limit = self._run.environment.options.max_result_bytes
            with self.atomic() if atomic else nullcontext():
                value = function(*args, **kwargs)
                self._steps[name] = encode_value(value, limit, f"result of step {name!r}")
        return json.loads(self._steps[name])

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Open a transaction, a savepoint where one is open; with commit() the job has ended."""
        run = self._run
        if run.committed or run.in_block:
            raise StepError("context.atomic() blocks do not nest, nor follow a commit().")
        run.in_block = True
        try:
            with transaction.atomic(using=run.environment.options.database):
                yield
        except BaseException:
            run.commit_result = None
            raise
        finally:
            run.in_block = False
        run.committed = run.commit_result is not None
