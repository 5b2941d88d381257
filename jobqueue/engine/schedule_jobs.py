"""The jobs of a schedule: made of its row, and decided upon while earlier ones have not ended."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from jobqueue import compat
from jobqueue.conf import options_for
from jobqueue.engine.enqueue import in_chunks, new_jobs
from jobqueue.engine.loading import new_result
from jobqueue.engine.registry import registry
from jobqueue.engine.uniqueness import Placed, insert_unique
from jobqueue.payload import decode_arguments
from jobqueue.plan import Plan, Policy
from jobqueue.states import State
from jobqueue.storage import Storage
from jobqueue.storage.records import NewJob
from jobqueue.storage.schedules import OVERLAP, ScheduleRow
from jobqueue.tasks import JobTask

MOST_WAITING = 100
"""Jobs of one schedule that wait for its earlier ones; further ticks get none."""

# --- parts of a row ----------------------------------------


def plan_of(row: ScheduleRow) -> Plan:
    """Return when a schedule ticks. Raise InvalidSchedule."""
    return Plan(
        cron=row.cron,
        every_seconds=row.every_seconds,
        at=row.at,
        time_zone=row.time_zone,
        start_at=row.start_at,
        end_at=row.end_at,
    )


def policy_of(row: ScheduleRow) -> Policy:
    """Return what becomes of its late and overlapping ticks. Raise InvalidSchedule."""
    return Policy(
        missed=row.missed,
        missed_limit=row.missed_limit,
        overlap=row.overlap,
        jitter_seconds=row.jitter_seconds,
    )


def task_of(row: ScheduleRow) -> JobTask[..., Any]:
    """Return the task with the schedule's queue and priority.

    Raise TaskNotRegistered, or InvalidTask if its alias does not have the queue.
    """
    return registry.get(row.task).using(
        backend=row.backend, queue_name=row.queue_name or None, priority=row.priority
    )


def jobs_of(
    row: ScheduleRow,
    task: JobTask[..., Any],
    times: Sequence[tuple[datetime | None, datetime | None]],
) -> list[NewJob]:
    """Return a job for each (tick, when it is due), with ascending ids.

    None for no tick, and for due at once. Raise TypeError or ValueError if the task does not take
    the arguments.
    """
    call = decode_arguments(row.arguments)
    jobs = new_jobs(task, [call] * len(times), row.backend, options_for(row.backend))
    return [
        replace(job, schedule=row.name, tick=tick, run_at=run_at, delay=None)
        for job, (tick, run_at) in zip(jobs, times, strict=True)
    ]


# --- what becomes of them ----------------------------------------


@dataclass(frozen=True, slots=True)
class Made:
    """What became of the jobs of some ticks: (job, outcome) each, and the results once inserted."""

    outcomes: Sequence[tuple[NewJob, str]]
    results: Sequence[Any] = ()
    ready_queues: frozenset[str] = frozenset()

    @property
    def jobs(self) -> list[NewJob]:
        """The jobs that are made."""
        return [job for job, outcome in self.outcomes if outcome == "enqueued"]


def live_before(storage: Storage, name: str, policy: Policy) -> int:
    """Return how many jobs of the schedule have not ended, if the policy cares."""
    return 0 if policy.overlap == "allow" else storage.live_of_schedule(name)


def decide(policy: Policy, jobs: Sequence[NewJob], live: int) -> Made:
    """Return which of `jobs` are made, and whether they wait, if `live` earlier ones live."""
    outcomes: list[tuple[NewJob, str]] = []
    for job in jobs:
        is_alone = not live or policy.overlap == "allow"
        if not is_alone and policy.overlap == "skip":
            outcomes.append((job, "overlap"))
        elif not is_alone and live > MOST_WAITING:
            outcomes.append((job, "crowded"))
        else:
            outcomes.append((job if is_alone else replace(job, blocked=OVERLAP), "enqueued"))
            live += 1
    return Made(outcomes)


def insert_made(
    storage: Storage, task: JobTask[..., Any], made: Made, now: datetime | None = None
) -> Made:
    """Insert the jobs that are to be made, in the transaction that is open.

    One whose unique key has a twin is not made; what the task says becomes of the twin.
    """
    if not made.jobs:
        return made
    placed = _placed(storage, task, made.jobs, now)
    own = {job.id: (job, row) for job, row in placed if row.id == job.id}
    results = []
    if compat.signal_is_heard(compat.task_enqueued, logging.DEBUG):
        results = [new_result(task, job, row) for job, row in own.values()]
    return Made(
        outcomes=[
            (job, "twin" if outcome == "enqueued" and job.id not in own else outcome)
            for job, outcome in made.outcomes
        ],
        results=results,
        ready_queues=frozenset(job.queue for job, row in placed if row.state == State.READY),
    )


def _placed(
    storage: Storage, task: JobTask[..., Any], jobs: list[NewJob], now: datetime | None
) -> list[Placed]:
    if task.unique is not None:
        return insert_unique(storage, jobs, task.unique.on_conflict, in_chunks)
    return list(zip(jobs, storage.insert_jobs(jobs, now), strict=True))


def announce_made(made: Made, alias: str) -> None:
    """Send Django's task_enqueued for the jobs that were made."""
    backend: Any = compat.task_backends[alias]
    backend.announce(list(made.results))
