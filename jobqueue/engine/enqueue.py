"""Making jobs: INSERTs in the caller's transaction, on the database of the alias's DATABASE.

Inside a transaction on that database the job stands and falls with it; outside it is durable when
the call returns. DATABASE alone decides where jobs live; routers are not asked, as a job in
another database than its worker's would never run.

Everything is checked in Python before the first statement, so that nothing of ours breaks the
caller's transaction; and nothing is retried: a database error surfaces as it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import asgiref
import django
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.conf import CHUNK_CHARACTERS, ENQUEUE_CHUNK, Options
from jobqueue.engine.announce import announce
from jobqueue.engine.arguments import check_call
from jobqueue.engine.definitions import as_moment
from jobqueue.engine.keys import key_of
from jobqueue.engine.uniqueness import insert_unique
from jobqueue.exceptions import ForeignTransactionWarning, InvalidArgument
from jobqueue.ids import new_job_id
from jobqueue.payload import encode_arguments, encode_value, storable_text
from jobqueue.states import State
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.records import Inserted, NewJob
from jobqueue.tasks import JobTask
from jobqueue.unique import RESCHEDULE, Unique

creator: ContextVar[str] = ContextVar("jobqueue_creator", default="")
"""Who makes jobs in this context, for their `created_by`; set by the surfaces."""

trace_carrier: ContextVar[Mapping[str, str] | None] = ContextVar("jobqueue_trace", default=None)
"""W3C trace headers (traceparent, tracestate) that jobs made in this context carry."""

MAX_CREATOR_BYTES = 255
MAX_TRACE_BYTES = 2_048
"""traceparent takes 55 bytes, tracestate at least 512 by its standard."""

Pair = tuple[Sequence[Any], Mapping[str, Any]]

_NOT_THE_CALLER = tuple(
    str(Path(path).parent)
    for path in (django.__file__, asgiref.__file__ or "", Path(__file__).parent)
)


def insert(
    task: JobTask[..., Any], pairs: Iterable[Pair], alias: str, options: Options
) -> list[tuple[NewJob, Inserted]]:
    """Insert a job of `task` for each pair (args, kwargs); return them in the same order.

    All or none. Raise TypeError or ValueError for a call that cannot travel, before any row.
    With a unique key the row may be a twin's: its id is not the job's then. KeyBusy: see there.
    """
    jobs = new_jobs(task, pairs, alias, options)
    if not jobs:
        return []
    connection = connections[options.database]
    warn_of_foreign_transaction(connection)
    storage = storage_for(connection, options)
    if task.unique is not None:
        return _insert_unique(task, jobs, alias, storage)
    chunks = list(in_chunks(jobs))
    with _one_transaction(connection, len(chunks), bool(task.tags)):
        inserted = [row for chunk in chunks for row in storage.insert_jobs(chunk)]
    if any(row.state == State.READY for row in inserted):
        announce(connection, alias, [task.queue_name])
    return list(zip(jobs, inserted, strict=True))


def _insert_unique(
    task: JobTask[..., Any], jobs: list[NewJob], alias: str, storage: Storage
) -> list[tuple[NewJob, Inserted]]:
    assert task.unique is not None
    rule = task.unique.on_conflict
    placed = insert_unique(storage, jobs, rule, in_chunks)
    if any(
        row.state == State.READY and (row.id == job.id or rule == RESCHEDULE) for job, row in placed
    ):
        announce(storage.connection, alias, [task.queue_name])
    return placed


def new_jobs(
    task: JobTask[..., Any], pairs: Iterable[Pair], alias: str, options: Options
) -> list[NewJob]:
    """Return the rows to insert. Ids ascend with the calls: equals in rank run in that order."""
    calls = [_encoded(task, pair, position, options) for position, pair in enumerate(pairs)]
    common = _common_values(task, alias, options)
    ids = sorted(new_job_id() for _ in calls)
    jobs = [
        NewJob(id=job_id, arguments=text, limit_key=limit_key, **common)
        for job_id, (text, limit_key) in zip(ids, calls, strict=True)
    ]
    return jobs if task.unique is None else [_with_key(job, task, task.unique) for job in jobs]


def _with_key(job: NewJob, task: JobTask[..., Any], unique: Unique) -> NewJob:
    """Return `job` with its unique key, if it has one."""
    key = task.unique_key or key_of(unique, task.func, task.takes_context, job.arguments)
    if key is None:
        return job
    window = cast(float | None, unique.window)
    return replace(job, unique_key=key, unique_until=str(unique.until), unique_window=window)


def _encoded(
    task: JobTask[..., Any], pair: Pair, position: int, options: Options
) -> tuple[str, str | None]:
    """Return the arguments of one call as text, and the key under which it is limited."""
    try:
        args, kwargs = _checked_pair(pair)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"Call {position} is not a pair (args, kwargs) of a list and a dict with text keys: "
            f"{pair!r:.200}. JobTask.bind(...) makes one."
        ) from None
    try:
        check_call(task.func, task.takes_context, args, kwargs)
        text = encode_arguments(args, kwargs, options.max_arguments_bytes)
        return text, task.key_for(args, kwargs) if task.limit is not None else None
    except (TypeError, ValueError) as error:
        if position:
            error.add_note(f"In call {position} of enqueue_many().")
        raise


def _checked_pair(pair: Any) -> Pair:
    args, kwargs = pair
    if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
        raise TypeError
    if not all(isinstance(key, str) for key in kwargs):
        raise TypeError
    return args, kwargs


def _common_values(task: JobTask[..., Any], alias: str, options: Options) -> dict[str, Any]:
    """Return what all jobs of one call to enqueue share."""
    carrier = trace_carrier.get()
    delayed = isinstance(task.run_after, timedelta)
    values = {
        "backend": alias,
        "task": task.module_path,
        "queue": task.queue_name,
        "priority": int(task.priority),
        "run_at": None if delayed or task.run_after is None else as_moment(task.run_after),
        "delay": task.run_after.total_seconds() if isinstance(task.run_after, timedelta) else None,
        "max_attempts": task.attempts_allowed(options),
        "timeout": task.timeout_seconds(options),
        "on_crash": task.on_crash,
        "aging_seconds": options.aging_seconds,
        "created_by": storable_text(creator.get(), MAX_CREATOR_BYTES),
        "trace_context": None
        if carrier is None
        else encode_value(dict(carrier), MAX_TRACE_BYTES, "trace context"),
        "tags": task.tags,
    }
    if isinstance(task.expires, timedelta):
        values["expires_in"] = task.expires.total_seconds()
    elif task.expires is not None:
        values["expires_at"] = as_moment(task.expires)
    return values


def in_chunks(jobs: list[NewJob]) -> Iterator[list[NewJob]]:
    """Cut `jobs` into the statements that insert them: bounded in rows and in text."""
    chunk: list[NewJob] = []
    room = CHUNK_CHARACTERS
    for job in jobs:
        if chunk and (len(chunk) >= ENQUEUE_CHUNK or len(job.arguments) > room):
            yield chunk
            chunk, room = [], CHUNK_CHARACTERS
        chunk.append(job)
        room -= len(job.arguments)
    yield chunk


def _one_transaction(
    connection: BaseDatabaseWrapper, chunks: int, has_tags: bool
) -> AbstractContextManager[None]:
    """Return a block that makes several statements one; a single one needs none.

    Inside the caller's transaction several chunks get a savepoint, so that a caller who catches
    the error of the second keeps nothing of the first.
    """
    if chunks > 1 or (has_tags and not connection.in_atomic_block):
        return transaction.atomic(using=connection.alias)
    return nullcontext()


def warn_of_foreign_transaction(connection: BaseDatabaseWrapper) -> None:
    """Warn if a transaction is open elsewhere only: this job will not wait for its commit."""
    if connection.in_atomic_block:
        return
    for other in connections.all(initialized_only=True):
        if other.in_atomic_block:
            warnings.warn(
                f"A job is enqueued inside transaction.atomic(using={other.alias!r}), but jobs "
                f"live in {connection.alias!r}: it may run before that transaction commits, and "
                "also if it rolls back. Open a transaction on both, or enqueue after the commit.",
                ForeignTransactionWarning,
                skip_file_prefixes=_NOT_THE_CALLER,
            )
            return
