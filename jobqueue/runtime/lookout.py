"""Where a worker looks for jobs of one kind: its queues, how far it may skip, and when again.

A claim looks at a bounded window per queue. Where a full window holds nothing this worker can
run, the rows behind it would starve, so the next look starts after it. Where nothing is left to
look at, the next look comes with a hint or the poll, not with every turn of the loop.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from jobqueue.storage import Storage

LOWEST_RANK = -(2**63)
LOOK_AGAIN_SECONDS = 1.0
"""How long a list of queues, or a skip, is trusted."""

CONTENDED_SECONDS = 0.005
"""First pause after a claim that found its rows locked: about what the claim of another takes.
Doubled, up to the poll, while they stay locked: somebody's transaction may last."""


class Lookout:
    """Looks after the jobs of some tasks; no queue names mean every queue with a ready job.

    empty_looks: how many in a row found nothing. refused: of the last claim, how many the worker
    handed back; they stand at the head again.
    """

    def __init__(self, tasks: Sequence[str], queues: Sequence[str], poll_seconds: float) -> None:
        self.tasks = tuple(tasks)
        self._names = list(queues)
        self._poll_seconds = poll_seconds
        self._seen: list[str] = list(queues)
        self._floors: dict[str, int] = {}
        self._looked_at = 0.0
        self._rest_until = 0.0
        self._contended_seconds = CONTENDED_SECONDS
        self._hints = 0
        self._hints_at_look = 0
        self.empty_looks = 0
        self.refused = 0

    @property
    def is_due(self) -> bool:
        """Whether to look now: something may have come since a look found nothing."""
        return bool(self.tasks) and time.monotonic() >= self._rest_until

    @property
    def rest_seconds(self) -> float:
        """Seconds until the next look, at most one poll."""
        left = self._rest_until - time.monotonic()
        return min(max(left, 0.0), self._poll_seconds) if left > 0 else self._poll_seconds

    def look(self, storage: Storage) -> tuple[list[str], list[int]]:
        """Return the queues to claim from, and the rank to start at in each."""
        self._hints_at_look = self._hints
        now = time.monotonic()
        if now - self._looked_at > LOOK_AGAIN_SECONDS:
            self._floors.clear()
            if not self._names:
                self._seen = storage.live_queues()
            self._looked_at = now
        return self._seen, self._current_floors()

    def found_something(self) -> None:
        """Note that a claim brought jobs, or that a job has ended, which may have enqueued some."""
        self.empty_looks = 0
        self._contended_seconds = CONTENDED_SECONDS

    def found_nothing(self, storage: Storage) -> bool:
        """Note that a claim came back empty; return whether to look again at once.

        At once behind full windows without use, which are skipped; in a moment where others were
        faster: looking again while they still hold the rows would only slow them down.
        """
        floors = self._current_floors()
        windows = storage.read_windows(self._seen, floors, self.tasks)
        if any(window.is_usable for window in windows):
            self._rest(self._contended_seconds * random.uniform(0.5, 1.5))
            self._contended_seconds = min(self._contended_seconds * 2, self._poll_seconds)
            return False
        # Up to the last rank, not past it: jobs behind the window may have the same one.
        skipped = {
            name: max(window.last_rank, floor + 1)
            for name, floor, window in zip(self._seen, floors, windows, strict=True)
            if window.last_rank is not None
        }
        self._floors.update(skipped)
        if not skipped:
            self.empty_looks += 1
            self.rest()
        return bool(skipped)

    def rest(self) -> None:
        """Do not look again before the next poll or hint."""
        self._rest(self._poll_seconds * random.uniform(0.8, 1.2))

    def _rest(self, seconds: float) -> None:
        """A hint that came since the look was perhaps about a job that the look did not see."""
        if self._hints == self._hints_at_look:
            self._rest_until = time.monotonic() + seconds

    def hinted(self) -> None:
        """Look from the front again, and now: something was enqueued. Any thread may call this."""
        self._hints += 1
        self._looked_at = 0.0
        self._rest_until = 0.0

    def _current_floors(self) -> list[int]:
        return [self._floors.get(name, LOWEST_RANK) for name in self._seen]
