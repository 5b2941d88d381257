"""Steps: pieces of a job whose recorded results are kept over its attempts.

A record is written on the side connection in a transaction of its own, under the guard, so it
stays when the job's own transaction rolls back. With ``atomic=True`` the function's writes and
the record share one guarded transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.db import connections

from jobqueue.engine.blocks import guarded_block
from jobqueue.engine.run_state import RunState
from jobqueue.exceptions import StepError
from jobqueue.payload import encode_value
from jobqueue.storage import storage_for

MAX_STEP_NAME_LENGTH = 255


def run_step(
    run: RunState,
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    atomic: bool,
) -> Any:
    """Return the recorded result of step `name`; run `function` and record it if there is none."""
    run.environment.refuse_copy()
    _check(run, name, atomic)
    with run.environment.side_storage() as storage:
        recorded = storage.find_step(run.claim.id, name)
    if recorded is not None:
        return json.loads(recorded)
    if atomic:
        return _run_in_block(run, name, function, args, kwargs)
    text = _encoded(run, name, function(*args, **kwargs))
    with run.environment.side_storage() as storage:
        storage.record_step(run.claim, name, text)
    return json.loads(text)


def _run_in_block(
    run: RunState,
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    options = run.environment.options
    with guarded_block(run):
        text = _encoded(run, name, function(*args, **kwargs))
        storage_for(connections[options.database], options).record_step(run.claim, name, text)
    return json.loads(text)


def _encoded(run: RunState, name: str, value: Any) -> str:
    limit = run.options.max_result_bytes
    return encode_value(value, limit, f"result of step {name!r}")


def _check(run: RunState, name: str, atomic: bool) -> None:
    if not name or len(name) > MAX_STEP_NAME_LENGTH or "\x00" in name:
        raise StepError(f"A step's name is 1 to {MAX_STEP_NAME_LENGTH} characters, not {name!r}.")
    if not run.in_atomic_task:
        _check_block(run, atomic)
        return
    if atomic:
        raise StepError(
            "context.step(atomic=True) needs a task with atomic=False: in an atomic task "
            "everything commits with the job."
        )
    database = run.environment.options.database
    if connections[database].vendor == "sqlite":
        raise StepError(
            "On SQLite a step needs a task with atomic=False: the open transaction of an atomic "
            "task holds the only write lock, so the step could not be recorded."
        )


def _check_block(run: RunState, atomic: bool) -> None:
    """Refuse a step whose record would wait for the very transaction that it is called in."""
    connection = connections[run.environment.options.database]
    in_test = run.environment.test_connection is not None  # the record is written on it, too
    if atomic or in_test or connection.vendor != "sqlite" or not connection.in_atomic_block:
        return
    raise StepError(
        "On SQLite a step inside a transaction could never be recorded: the open transaction holds "
        "the only write lock. Call it before `with context.atomic():` or transaction.atomic(), or "
        "write in the block itself what belongs to it."
    )
