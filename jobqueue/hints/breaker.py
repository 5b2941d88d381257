"""A circuit breaker: what a failing or slow server of hints may cost those who enqueue.

After a failure nothing is tried for PAUSE_SECONDS; then one call is let through. Beside that, the
time that calls take (beyond what a healthy one does) comes from a budget that fills up slowly: a
hiccup passes, but a server that is always slow, or hangs longer than its time-outs say (a name
that does not resolve), costs no more than a twentieth of the time.

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
MAX_PAUSE_SECONDS = 60.0
"""Longest pause, whatever the last call cost: hints come back by themselves."""
FREE_SECONDS = 0.005
"""What each call may take for nothing; a healthy one takes a tenth of it."""
BUDGET_SECONDS = 0.25
"""What calls may take at once beyond that."""
SHARE = 0.05
"""Seconds by which the budget grows in a second."""


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
        self._budget = BUDGET_SECONDS
        self._spent_at = 0.0
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
            self._paused_until = now + max(PAUSE_SECONDS, self._spend(started, now))
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
            pause = self._spend(started, now)
            if pause or self.is_failing:
                self._paused_until = now + pause
            is_news = self.is_failing
            self.is_failing = False
        if is_news:
            emit("hints.sending_recovered", **self._facts)

    def _spend(self, started: float, now: float) -> float:
        """Take a call's time from the budget; return the seconds until it is not overdrawn."""
        grown = self._budget + SHARE * (now - self._spent_at)
        self._budget = min(grown, BUDGET_SECONDS) - max(now - started - FREE_SECONDS, 0.0)
        self._spent_at = now
        return min(max(-self._budget / SHARE, 0.0), MAX_PAUSE_SECONDS)
