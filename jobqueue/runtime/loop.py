"""The one skeleton of every loop: ``run_once`` decides and never sleeps, `Loop` waits and survives.

A database that is away makes a loop wait longer (jittered, bounded) and say so once; it never
ends it. Any other error is logged with its traceback and treated alike: upkeep that stays up but
dead would be worse.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable

from jobqueue.events import emit, line_of

logger = logging.getLogger("jobqueue")

MAX_BACKOFF_SECONDS = 5.0
"""Longest pause after errors: within it a loop notices that the database is back."""


class Loop:
    """Calls `run_once` about every `interval` seconds until stopped.

    run_once: returns True to be called again at once; it may also ask for a short pause (`soon`).
    reset: called after an error, to drop a broken connection.
    """

    def __init__(
        self,
        name: str,
        run_once: Callable[[], bool | None],
        interval: float,
        reset: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self.is_failing = False
        self.rounds = 0
        self.succeeded_at = time.monotonic()
        self._run_once = run_once
        self._interval = interval
        self._reset = reset
        self._pause = 0.0
        self._soon = math.inf
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Run in a daemon thread."""
        self._thread = threading.Thread(target=self.run, name=f"jobqueue-{self.name}", daemon=True)
        self._thread.start()

    def run(self) -> None:
        """Run in this thread until `stop`."""
        while not self._stopping.is_set():
            self._wake.clear()
            self._soon = math.inf
            if self._turn():
                continue
            pause = min(self._soon, self._interval) * random.uniform(0.8, 1.2)
            self._wake.wait(self._pause or pause)

    def wake(self) -> None:
        """Make the next turn come at once."""
        self._wake.set()

    def soon(self, seconds: float) -> None:
        """Let the pause after this turn last about `seconds`, if that is less than the interval."""
        self._soon = seconds

    def stop(self) -> None:
        """Ask the loop to end after the turn it is in."""
        self._stopping.set()
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Wait for the loop's thread; return whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def _turn(self) -> bool:
        try:
            again = bool(self._run_once())
        except Exception as error:
            self._failed(error)
            return False
        self.rounds += 1
        self.succeeded_at = time.monotonic()
        if self.is_failing:
            self.is_failing = False
            emit("loop.recovered", loop=self.name)
        self._pause = 0.0
        return again

    def _failed(self, error: Exception) -> None:
        self._pause = min(max(self._pause * 2, 0.1), MAX_BACKOFF_SECONDS)
        self._pause *= random.uniform(0.7, 1.0)
        if not self.is_failing:
            self.is_failing = True
            emit("loop.failing", level=logging.WARNING, loop=self.name, error=line_of(error))
            logger.debug("The loop %s failed", self.name, exc_info=error)
        try:
            self._reset()
        except Exception:
            logger.debug("The reset of loop %s failed", self.name, exc_info=True)
