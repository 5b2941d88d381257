"""Leaderless upkeep: promote what is due, cancel what has expired, park and admit unknown tasks.

Any number of processes may run these at once: each is one statement with SKIP LOCKED and
compare-and-set.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobqueue.engine.announcements import announce_all_finished
from jobqueue.events import emit
from jobqueue.storage import Storage
from jobqueue.storage.records import EndedJob

SWEEP_LIMIT = 1_000
"""Rows that one statement of a sweep changes: keeps its locks short."""


def promote_due(storage: Storage) -> set[str]:
    """Make due jobs ready; return the queues that got some."""
    queues: set[str] = set()
    while True:
        promoted = storage.promote(SWEEP_LIMIT)
        queues.update(promoted)
        if len(promoted) < SWEEP_LIMIT:
            return queues


def expire_due(storage: Storage) -> int:
    """Cancel the jobs that have not started in time, tell of them, and return how many."""
    count = 0
    while True:
        expired = storage.expire(SWEEP_LIMIT)
        count += len(expired)
        if expired:
            announce_expired(expired)
        if len(expired) < SWEEP_LIMIT:
            return count


def announce_expired(expired: Sequence[EndedJob]) -> None:
    """Tell of jobs that were cancelled because they have not started in time."""
    tasks = sorted({job.task for job in expired})
    emit("jobs.expired", count=len(expired), tasks=",".join(tasks[:10]))
    announce_all_finished(expired)


def obey_requests(storage: Storage) -> int:
    """Cancel jobs that wait again although somebody asked, while they ran, to cancel them.

    A worker, supervisor or reaper that knew of the request has cancelled the job itself; these came
    back in the moment before. Return how many.
    """
    asked = storage.asked(SWEEP_LIMIT)
    ended: list[EndedJob] = []
    for reason in dict.fromkeys(reason for _, reason in asked):
        ids = [job.id for job, why in asked if why == reason]
        done = set(storage.cancel_waiting(ids, reason))
        ended += [job for job, _ in asked if job.id in done]
    if ended:
        emit("jobs.obeyed", count=len(ended))
        announce_all_finished(ended)
    return len(ended)


def sweep_unknown(storage: Storage) -> set[str]:
    """Block jobs whose task no live worker has registered, admit those that one has.

    Does nothing while no worker is alive: then nobody knows anything, which says nothing about
    the jobs. Return the queues that got jobs back.
    """
    known = sorted(storage.known_tasks())
    if not known:
        return set()
    admitted = storage.admit_known(known, SWEEP_LIMIT)
    parked = storage.park_unknown(known, SWEEP_LIMIT)
    if parked:
        emit("jobs.parked", count=len(parked), tasks=",".join(sorted(set(parked))[:10]))
    if admitted:
        emit("jobs.admitted", count=len(admitted))
    return set(admitted)


__all__ = ["announce_expired", "expire_due", "obey_requests", "promote_due", "sweep_unknown"]
