"""When keys under a rate have room again, so that their jobs are admitted to the moment.

Without this they would wait for the sweep of each poll, and a rate per tenth of a second would come
to a tenth of itself. Only a help: what is forgotten here the sweep finds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

MOST = 1_000
"""Keys that are remembered; others wait for the sweep."""
LATE_SECONDS = 0.002
"""Added to each time: the database's clock must have passed it."""


class RateWindows:
    """Remembers when keys open; times are seconds from now. For one thread."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def note(self, opens: Mapping[str, float]) -> None:
        """Remember when each key opens, if there is space."""
        now = time.monotonic()
        for key, seconds in opens.items():
            if key in self._at or len(self._at) < MOST:
                self._at[key] = now + seconds + LATE_SECONDS

    def due(self) -> list[str]:
        """Return the keys that are open now, and forget them."""
        if not self._at:
            return []
        now = time.monotonic()
        keys = [key for key, at in self._at.items() if at <= now]
        for key in keys:
            del self._at[key]
        return keys

    @property
    def next_seconds(self) -> float:
        """Seconds until the next key opens; infinite if none is known."""
        return max(min(self._at.values()) - time.monotonic(), 0.0) if self._at else float("inf")
