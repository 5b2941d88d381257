"""When a supervisor may start a process: at once, or after a rest where starting does not help.

Three things make it rest, longer each time in a row: children that die at birth, processes that
cannot be started at all, and a process for a suspect that found others had taken it.
"""

from __future__ import annotations

import logging
import time

from jobqueue.events import emit
from jobqueue.runtime.children import Child

QUICK_DEATH_SECONDS = 2.0
"""A child that lived no longer is started again with back-off."""
MAX_RESTART_PAUSE_SECONDS = 30.0


class Restarts:
    """The rests of one supervisor, which wants `processes` children."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._quick_deaths = 0
        self._failed_starts = 0
        self._idle_lonely = 0
        self._restart_at = 0.0
        self._lonely_at = 0.0

    @property
    def rest(self) -> bool:
        """Whether nothing is to be started now."""
        return time.monotonic() < self._restart_at

    @property
    def lonely_rest(self) -> bool:
        """Whether no process for a suspect is to be started now."""
        return time.monotonic() < self._lonely_at

    def note_start(self) -> None:
        """Note that all could be started that was wanted."""
        self._failed_starts = 0

    def note_failed_start(self, error: OSError) -> None:
        """Note that a process could not be started; the first time in a row is told of."""
        if not self._failed_starts:
            emit("process.not_started", level=logging.ERROR, error=str(error))
        self._failed_starts += 1
        self._pause(self._failed_starts)

    def note_crash(self, child: Child) -> None:
        """Start again at once after a crash, with back-off where children die at birth."""
        if time.monotonic() - child.started_at > QUICK_DEATH_SECONDS or child.alone:
            self._quick_deaths = 0
            return
        self._quick_deaths += 1
        if self._quick_deaths > self._processes:
            self._pause(self._quick_deaths - self._processes)

    def note_lonely(self, claimed: int) -> None:
        """Take longer and longer pauses while processes for a suspect claim nothing."""
        self._idle_lonely = 0 if claimed else self._idle_lonely + 1
        if self._idle_lonely:
            self._lonely_at = time.monotonic() + _seconds(self._idle_lonely)

    def _pause(self, number: int) -> None:
        """Start nothing for a while, longer each time in a row."""
        self._restart_at = time.monotonic() + _seconds(number)


def _seconds(number: int) -> float:
    """Return how long to rest after the `number`-th failure in a row."""
    return min(0.5 * 2.0 ** min(number, 10), MAX_RESTART_PAUSE_SECONDS)
