"""A worker process in one thread: real rows, a real claim, the engine's own run and flush."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connections
from django.utils import timezone

from jobqueue.engine.completion import flush
from jobqueue.engine.environment import Environment
from jobqueue.engine.execution import run_async, run_sync
from jobqueue.engine.middleware import Middleware
from jobqueue.engine.outcomes import Ended
from jobqueue.engine.runs import Run, prepare
from jobqueue.models import Attempt, Job
from jobqueue.states import State
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.records import Claim, Ending
from jobqueue.tasks import JobTask
from tests.app.models import Effect
from tests.engine.tasks import atomic_job, bodies
from tests.storage.making import register

FAR_FUTURE = timedelta(days=3_000)


@dataclass
class Ran:
    """One job after one attempt; `job` and `attempts` are read anew each time."""

    id: UUID
    ended: Ended | None = None

    @property
    def job(self) -> Job:
        return Job.objects.get(pk=self.id)

    @property
    def state(self) -> str:
        return self.job.state

    @property
    def attempts(self) -> list[Attempt]:
        return list(Attempt.objects.filter(job_id=self.id).order_by("number"))

    @property
    def attempt(self) -> Attempt:
        """The only attempt."""
        (only,) = self.attempts
        return only

    @property
    def effects(self) -> list[str]:
        return effects(self.id)


def leave(context: Any, label: str = "done") -> None:
    """Leave an effect through Django's connection."""
    Effect.objects.create(job_id=str(context.job_id), label=label)


def effects(job_id: UUID) -> list[str]:
    """Return the labels of a job's committed effects, in order."""
    rows = Effect.objects.filter(job_id=str(job_id)).order_by("id")
    return list(rows.values_list("label", flat=True))


@dataclass
class Bench:
    """One worker. Its storage is the fetch loop's, its jobs run in the calling thread."""

    environment: Environment
    storage: Storage
    middleware: Middleware = field(default_factory=Middleware)

    @property
    def identity(self) -> UUID:
        return self.environment.identity

    # --- jobs ---------------------------------------------------------------------------------

    def enqueue(
        self,
        body: Callable[..., Any],
        task: JobTask[..., Any] = atomic_job,
        /,
        *args: Any,
        **kwargs: Any,
    ) -> UUID:
        """Make a job that runs `body`; return its id."""
        name = uuid4().hex
        bodies[name] = body
        return UUID(task.enqueue(name, *args, **kwargs).id)

    def claim(self, task: JobTask[..., Any] = atomic_job, limit: int = 1) -> list[Claim]:
        """Claim up to `limit` jobs of `task`, whether due or not."""
        self.storage.promote(100, now=timezone.now() + FAR_FUTURE)
        names = [task.module_path]
        found = self.storage.claim_many(self.identity, [task.queue_name], names, limit)
        return found or self.storage.claim_alone(self.identity, [task.queue_name], names)

    def claim_one(self, body: Callable[..., Any], task: JobTask[..., Any] = atomic_job) -> Claim:
        """Make a job and claim it."""
        self.enqueue(body, task)
        (claim,) = self.claim(task)
        return claim

    # --- running ------------------------------------------------------------------------------

    def execute(
        self, claim: Claim, task: JobTask[..., Any] = atomic_job, *, has_next: bool = False
    ) -> Ended:
        """Run a claim as a slot does; nothing is flushed."""
        run = prepare(claim, task, self.environment, self.middleware)
        if isinstance(run, Ended):
            return run
        return asyncio.run(_in_loop(run)) if task.is_async else run_sync(run, has_next=has_next)

    def flush(self, *ended: Ended) -> list[Ended]:
        """Write ends as the fetch loop does; return those to be written later."""
        return flush(self.storage, ended, self.environment)

    def run(
        self,
        body: Callable[..., Any],
        task: JobTask[..., Any] = atomic_job,
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Ran:
        """Make a job of `body`, run it once and write down how that ended."""
        ran = Ran(self.enqueue(body, task, *args, **kwargs))
        return self.again(ran, task)

    def again(self, ran: Ran, task: JobTask[..., Any] = atomic_job) -> Ran:
        """Run one more attempt of a job."""
        (claim,) = self.claim(task)
        assert claim.id == ran.id
        ran.ended = self.execute(claim, task)
        self.flush(ran.ended)
        return ran

    # --- other workers ------------------------------------------------------------------------

    def take_away(self, claim: Claim, now: datetime | None = None) -> Claim:
        """Give a running job to another worker, as a reaper and a claim would; return its claim."""
        self.reap(claim)
        successor = register(self.storage)
        (taken,) = self.storage.claim_many(successor, [claim.queue], [claim.task], 1, now=now)
        assert taken.id == claim.id
        return taken

    def reap(self, claim: Claim) -> None:
        """End a run as lost."""
        lost = Ending(
            id=claim.id,
            fence=claim.fence,
            worker=claim.worker,
            state=State.READY,
            outcome="lost",
        )
        assert self.storage.end_many([lost]) == []


async def _in_loop(run: Run) -> Ended:
    async with ThreadSensitiveContext():
        try:
            return await run_async(run)
        finally:
            await sync_to_async(connections.close_all)()


def labels(jobs: Sequence[Ran]) -> list[list[str]]:
    """Return the effects of several jobs."""
    return [job.effects for job in jobs]


def storage_on(connection: Any, bench: Bench) -> Storage:
    """Return the storage class of the bench on another connection."""
    return storage_for(connection, bench.environment.options)
