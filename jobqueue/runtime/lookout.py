"""Where a worker looks for jobs: its queues, and how far it may skip in each.

A claim looks at a bounded window per queue. Where a full window holds nothing this worker can
run, the rows behind it would starve, so the next look starts after it; a hint, or some time,
starts from the front again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from jobqueue.storage import Storage

LOWEST_RANK = -(2**63)
LOOK_AGAIN_SECONDS = 1.0
"""How long a list of queues, or a skip, is trusted."""


class Lookout:
    """The queues of one worker process; empty names mean every queue that holds a ready job."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._seen: list[str] = list(names)
        self._floors: dict[str, int] = {}
        self._looked_at = 0.0

    def look(self, storage: Storage) -> tuple[list[str], list[int]]:
        """Return the queues to claim from, and the rank to start at in each."""
        now = time.monotonic()
        if now - self._looked_at > LOOK_AGAIN_SECONDS:
            self._floors.clear()
            if not self._names:
                self._seen = storage.live_queues()
            self._looked_at = now
        return self._seen, [self._floors.get(name, LOWEST_RANK) for name in self._seen]

    def skip(self, storage: Storage) -> bool:
        """Skip full windows that held nothing this worker could claim; return whether any was."""
        floors = [self._floors.get(name, LOWEST_RANK) for name in self._seen]
        ranks = storage.window_ranks(self._seen, floors)
        skipped = {n: r + 1 for n, r in zip(self._seen, ranks, strict=True) if r is not None}
        self._floors.update(skipped)
        return bool(skipped)

    def hinted(self) -> None:
        """Look from the front again: something was enqueued."""
        self._looked_at = 0.0
