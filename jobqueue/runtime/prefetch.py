"""How many jobs a process should claim: its free slots, and what it will start in a moment.

Prefetching keeps short jobs flowing (batch size is the lever of throughput) but makes other jobs
wait behind a long one, so it is none for tasks not yet seen or long, and grows only with
measured run times. A suspect is never prefetched: it may take the process down with it.
"""

from __future__ import annotations

from jobqueue.conf import PREFETCH_SECONDS
from jobqueue.engine.outcomes import Ended
from jobqueue.storage.records import Claim

_WEIGHT = 0.05
"""Weight of the newest run in the moving average: some twenty runs are remembered."""
_SHORTEST_SECONDS = 1e-5


class Prefetch:
    """Decides the size of the next claim of one process."""

    def __init__(self, slots: int, batch: int) -> None:
        self._slots = slots
        self._batch = batch
        self._mean: float | None = None
        self._known: set[str] = set()
        self._is_stuck = False

    def learn(self, ended: Ended) -> None:
        """Take a run's time into the average."""
        seconds = ended.ended - ended.started
        self._known.add(ended.claim.task)
        self._is_stuck = False
        self._mean = (
            seconds if self._mean is None else self._mean + _WEIGHT * (seconds - self._mean)
        )

    def room(self, running: int, waiting: int) -> int:
        """Return how many jobs to claim now, 0 while enough are waiting."""
        free = max(self._slots - running, 0) - waiting
        ahead = self._ahead()
        if ahead and waiting > ahead // 2:
            return 0
        return min(max(free, 0) + max(ahead - waiting, 0), self._batch)

    def gave_back(self) -> None:
        """Note that claims found no slot in time: claim ahead of none until one has become free."""
        self._is_stuck = True

    def limited_room(self, running: int, waiting: int, limited_waiting: int) -> int:
        """Return how many jobs with a limit to claim now: they are never taken ahead.

        A claimed one counts against its limit while it waits. It starts before all others that
        wait, so where the slots are kept busy by short jobs one may stand by for the next.
        """
        free = self._slots - running - waiting
        if free > 0:
            return free
        return int(self._ahead() > 0 and not limited_waiting)

    def may_wait(self, claim: Claim, waiting: int) -> bool:
        """Return whether `claim` may stand behind `waiting` others until a slot is free."""
        if waiting < self._slots:
            return True
        return claim.suspicions == 0 and claim.task in self._known

    def _ahead(self) -> int:
        if self._mean is None or self._is_stuck:
            return 0
        return min(
            int(self._slots * PREFETCH_SECONDS / max(self._mean, _SHORTEST_SECONDS)),
            2 * self._batch,
        )
