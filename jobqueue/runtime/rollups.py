"""When this process counts attempts into rollups, and what happens if that fails.

The row that is held while counting says when it is time, for all schedulers together; here only
how often this one looks. Statistics are the least of what a scheduler does: an error in them is
said once, and stops neither promotion nor ticks.
"""

from __future__ import annotations

import logging
import random
import time

from jobqueue.engine.rollups import TURN_SECONDS, prune_rollups, roll_up
from jobqueue.events import emit, line_of
from jobqueue.storage import Storage
from jobqueue.storage.errors import is_away

logger = logging.getLogger("jobqueue")

FAILED_PAUSE_SECONDS = 60.0
"""Pause after an error that is not about the connection: the next turn meets the same rows."""
PRUNE_SECONDS = 300.0
"""Pause between two prunings, jittered: many processes prune in turn, not together."""


class RollupDuty:
    """A scheduler's part in counting."""

    def __init__(self) -> None:
        self._count_at = time.monotonic() + TURN_SECONDS * random.random()
        self._prune_at = time.monotonic() + PRUNE_SECONDS * random.random()
        self._is_failing = False

    def run_once(self, storage: Storage) -> None:
        """Count, or prune, if this process should look now. Raise only if the database is away."""
        now = time.monotonic()
        if now < self._count_at:
            return
        try:
            self._count_at = now + self._count(storage)
            if now >= self._prune_at:
                self._prune_at = now + PRUNE_SECONDS * random.uniform(0.5, 1.5)
                prune_rollups(storage)
        except Exception as error:
            if is_away(error):
                raise
            self._failed(error)
            self._count_at = now + FAILED_PAUSE_SECONDS

    def _count(self, storage: Storage) -> float:
        """Count, and return how long this process need not look again."""
        turn = roll_up(storage)
        if self._is_failing:
            self._is_failing = False
            emit("rollups.recovered")
        return TURN_SECONDS if turn is None else turn.pause_seconds

    def _failed(self, error: Exception) -> None:
        if not self._is_failing:
            self._is_failing = True
            emit("rollups.failing", level=logging.WARNING, error=line_of(error))
        logger.debug("Counting attempts failed", exc_info=error)
