"""Jobs in every state, written straight into the tables: workers are not these tests' subject."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.utils import timezone

from jobqueue.ids import new_job_id
from jobqueue.models import Attempt, Job
from jobqueue.states import FINISHED


def set_state(result: Any, state: str, /, **changes: Any) -> Job:
    """Bring the job of `result` into `state`; return its row."""
    job = Job.objects.get(pk=result.id)
    values: dict[str, Any] = {"state": state, "reason": "", **changes}
    if state == "running":
        now = timezone.now()
        values = {
            "worker": uuid4(), "claimed_at": now, "deadline": now + timedelta(hours=1), **values,
        }  # fmt: skip
    elif state == "blocked":
        values = {**values, "reason": values["reason"] or "unknown task"}
    elif state in FINISHED:
        values = {"finished_at": timezone.now(), **values}
    attempts = Attempt.objects.filter(job_id=job.pk).count()
    values.setdefault("attempts", attempts)
    values.setdefault("fence", attempts + (state == "running"))
    Job.objects.filter(pk=job.pk).update(**values)
    return Job.objects.get(pk=job.pk)


def add_attempt(result: Any, outcome: str, /, **changes: Any) -> UUID:
    """Record an attempt that has ended; return the identity of its worker."""
    number = Attempt.objects.filter(job_id=result.id).count() + 1
    now = timezone.now()
    attempt = Attempt.objects.create(
        **{
            "job_id": result.id,
            "number": number,
            "fence": number,
            "worker": uuid4(),
            "task": "t",
            "queue": "default",
            "outcome": outcome,
            "charged": outcome in ("failed", "timed_out"),
            "started_at": now + timedelta(seconds=number),
            "finished_at": now + timedelta(seconds=number + 1),
            **changes,
        }
    )
    return attempt.worker


def insert_row(**changes: Any) -> Job:
    """Insert a ready job as another program, or an older version, might have written it."""
    now = timezone.now()
    return Job.objects.create(
        **{
            "id": new_job_id(),
            "backend": "default",
            "task": "tests.tasks.samples.add",
            "queue": "default",
            "state": "ready",
            "arguments": {"args": [1], "kwargs": {}},
            "run_at": now,
            "rank": 0,
            "enqueued_at": now,
            "max_attempts": 5,
            "timeout": 1_800.0,
            **changes,
        }
    )


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run `coroutine`; close the connections of the thread that its database work went to."""

    async def main() -> Any:
        try:
            return await coroutine
        finally:
            await sync_to_async(connections.close_all)()

    return asyncio.run(main())


class _Undo(Exception):
    """Rolls a block back."""


@contextmanager
def rolled_back() -> Iterator[None]:
    """A transaction, or a savepoint inside one, that is rolled back at its end."""
    with suppress(_Undo), transaction.atomic():
        yield
        raise _Undo
