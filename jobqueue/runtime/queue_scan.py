"""Where a worker looks for jobs of one kind: its queues, how far it may skip, and when again.

A claim looks at a bounded window per queue. Where a full window holds nothing this worker can
run, the rows behind it would starve, so the next look starts after it. Where nothing is left to
look at, the next look comes with a hint or the poll, not with every turn of the loop.

Claims let jobs with a limit take part only while there are some (`has_limited`): found out by the
look that follows an empty claim, and once a second where none is ever empty.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from jobqueue.engine.limits import Taken
from jobqueue.storage import Storage
from jobqueue.storage.records import FRONT, Place

LOOK_AGAIN_SECONDS = 1.0
"""How long a list of queues, or a skip, is trusted."""

CONTENDED_SECONDS = 0.005
"""First pause after a claim that found its rows locked: about what the claim of another takes.
Doubled, up to the poll, while they stay locked: somebody's transaction may last."""


class QueueScan:
    """Looks after the jobs of some tasks; no queue names mean every queue with a ready job.

    empty_looks: how many in a row found nothing. refused: of the last claim, how many the worker
    handed back; they stand at the head again.
    """

    def __init__(self, tasks: Sequence[str], queues: Sequence[str], poll_seconds: float) -> None:
        self.tasks = tuple(tasks)
        self._names = list(queues)
        self._poll_seconds = poll_seconds
        self._seen: list[str] = list(queues)
        self._behind: dict[str, Place] = {}
        self._looked_at = 0.0
        self._rest_until = 0.0
        self._contended_seconds = CONTENDED_SECONDS
        self._hints = 0
        self._hints_at_look = 0
        self.empty_looks = 0
        self.refused = 0
        self._busy_since: float | None = None  # no claim was empty, and none looked at limits
        self._full: set[str] = set()
        self.has_limited = False

    @property
    def is_due(self) -> bool:
        """Whether to look now: something may have come since a look found nothing."""
        return bool(self.tasks) and time.monotonic() >= self._rest_until

    @property
    def rest_seconds(self) -> float:
        """Seconds until the next look, at most one poll."""
        left = self._rest_until - time.monotonic()
        return min(max(left, 0.0), self._poll_seconds) if left > 0 else self._poll_seconds

    def look(self, storage: Storage) -> tuple[list[str], list[Place]]:
        """Return the queues to claim from, and the place to start behind in each."""
        self._hints_at_look = self._hints
        now = time.monotonic()
        if self._busy_since is not None and now - self._busy_since > LOOK_AGAIN_SECONDS:
            self.has_limited = True
            self._busy_since = now
        if now - self._looked_at > LOOK_AGAIN_SECONDS:
            self._behind.clear()
            if not self._names:
                self._seen = storage.live_queues()
            self._looked_at = now
        return self._seen, self._places(self._seen)

    def found_something(self) -> None:
        """Note that a claim brought jobs, or that a job has ended, which may have enqueued some."""
        self.empty_looks = 0
        self._contended_seconds = CONTENDED_SECONDS
        if self._busy_since is None:
            self._busy_since = time.monotonic()

    def learn(self, taken: Taken) -> None:
        """Note what a claim that let jobs with a limit take part has met."""
        self.has_limited = taken.has_limited
        self._full = taken.full_queues

    def found_nothing(self, storage: Storage, taken: Taken | None = None) -> bool:
        """Note that a claim came back empty; return whether to look again at once.

        At once behind full windows without use, which are skipped, and where only jobs with a limit
        are; in a moment where others were faster: looking again while they still hold the rows
        would only slow them down. A full queue is left until it has room.
        """
        self._busy_since = None
        taken = Taken() if taken is None else taken  # an empty one is false
        seen = [name for name in self._seen if name not in taken.full_queues]
        windows = storage.read_windows(seen, self._places(seen), self.tasks)
        if not self.has_limited and any(window.has_limited for window in windows):
            self.has_limited = True
            return True
        if taken.is_contended or any(window.is_usable or window.has_limited for window in windows):
            self._rest(self._contended_seconds * random.uniform(0.5, 1.5))
            self._contended_seconds = min(self._contended_seconds * 2, self._poll_seconds)
            return False
        skipped = {
            name: window.last
            for name, window in zip(seen, windows, strict=True)
            if window.last is not None
        }
        self._behind.update(skipped)
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

    def has_ended(self, queue: str) -> None:
        """Look again if a job of this queue has ended, and the queue was full."""
        if queue in self._full:
            self._rest_until = 0.0

    def hinted(self) -> None:
        """Look from the front again, and now: something was enqueued. Any thread may call this."""
        self._hints += 1
        self._looked_at = 0.0
        self._rest_until = 0.0

    def _places(self, names: Sequence[str]) -> list[Place]:
        return [self._behind.get(name, FRONT) for name in names]
