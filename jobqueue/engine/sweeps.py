"""Leaderless upkeep: promote what is due, park what nobody knows, admit what somebody knows.

Any number of processes may run these at once: each is one statement with SKIP LOCKED and
compare-and-set.
"""

from __future__ import annotations

from jobqueue.events import emit
from jobqueue.storage import Storage

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


__all__ = ["promote_due", "sweep_unknown"]
