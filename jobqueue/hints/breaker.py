"""A circuit breaker: what a failing or slow server of hints may cost those who enqueue.

One rule: hints cost at most about a twentieth of a process's time. A call that failed, or took
longer than SLOW_SECONDS, is followed by a pause of twenty times its duration (at least
PAUSE_SECONDS after a failure) in which nothing is tried. Then one call is let through.

One log line when calls begin to fail, one when they work again; none for each.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from jobqueue.events import emit

PAUSE_SECONDS = 2.0
"""Shortest pause after a failure; the poll (a second by default) covers it."""
SLOW_SECONDS = 0.025
"""A call that takes longer pauses the next ones, even if it succeeds."""
COST_FACTOR = 20.0
"""Pause per time spent."""


class Breaker:
    """Guards one server for one process; safe to use from any thread.

    facts: what its log lines say beside the error. describe: an error as text without secrets.
    """

    def __init__(
        self,
        describe: Callable[[Exception], str],
        clock: Callable[[], float] = time.monotonic,
        **facts: Any,
    ) -> None:
        self.is_failing = False
        self._describe = describe
        self._clock = clock
        self._facts = facts
        self._lock = threading.Lock()
        self._paused_until = 0.0

    def call(self, action: Callable[[], object]) -> bool:
        """Call `action` unless paused; return whether it was called and succeeded. Never raise."""
        if not self._may_call():
            return False
        started = self._clock()
        try:
            action()
        except Exception as error:
            self._failed(error, started)
            return False
        self._succeeded(started)
        return True

    def _may_call(self) -> bool:
        with self._lock:
            now = self._clock()
            if now < self._paused_until:
                return False
            if self.is_failing:
                # This call is the trial; nobody else may hang beside it.
                self._paused_until = now + PAUSE_SECONDS
            return True

    def _failed(self, error: Exception, started: float) -> None:
        with self._lock:
            now = self._clock()
            self._paused_until = now + max(PAUSE_SECONDS, COST_FACTOR * (now - started))
            is_news = not self.is_failing
            self.is_failing = True
        if is_news:
            emit(
                "hints.sending_failed",
                level=logging.WARNING,
                **self._facts,
                error=self._describe(error),
            )

    def _succeeded(self, started: float) -> None:
        with self._lock:
            now = self._clock()
            spent = now - started
            if spent > SLOW_SECONDS:
                self._paused_until = now + COST_FACTOR * spent
            elif self.is_failing:
                self._paused_until = 0.0
            is_news = self.is_failing
            self.is_failing = False
        if is_news:
            emit("hints.sending_recovered", **self._facts)
