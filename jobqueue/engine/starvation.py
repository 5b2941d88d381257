"""Claiming a unique job that enqueues keep locked: in line with them, instead of passing it over.

Claims and promotions skip locked rows. Enqueues that meet a unique job lock it until they commit,
and where they overlap it is never free (seen: 600 s). Once it could have started for some seconds,
they lock it one at a time; whoever waits for the row then comes to its turn.

All of it is one transaction, which waits for nothing else once it has the row. What a process
leaves behind that dies here: nothing before the COMMIT, a claim like any other after it. One that
freezes with the row in its hands loses its session within seconds, and with it the row.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from jobqueue.engine.limits import Wish, take
from jobqueue.engine.sweeps import SWEEP_LIMIT
from jobqueue.exceptions import KeyBusy
from jobqueue.storage import Storage
from jobqueue.storage.records import FRONT, Claim, Place, Starved


def claim_in_line(
    storage: Storage,
    job: Starved,
    worker: UUID,
    wait_seconds: float,
    is_wanted: Callable[[], bool] = lambda: True,
) -> tuple[list[Claim], set[str]]:
    """Wait for the job's row, and claim it, by the rules of any claim; nothing if it took too long.

    Return also the queues that got ready jobs: whatever was due is promoted first, as this one may
    not have been. is_wanted: asked once the row is ours. If the job has changed by then, another
    of its task may be claimed, as rank decides.
    """

    def run() -> tuple[list[Claim], set[str]]:
        if not storage.wait_in_line(job.id) or not is_wanted():
            return [], set()
        promoted = set(storage.promote(SWEEP_LIMIT))
        before = Place(job.rank, FRONT.id)
        taken = take(storage, Wish(worker, [job.queue], [job.task], [before]), 1, 1)
        return taken.claims + taken.limited, promoted

    try:
        return storage.bounded(run, wait_seconds)
    except KeyBusy:
        return [], set()
