"""The watchdog of a worker process: one thread that interrupts runs which have to stop.

No timer a job: a few times a second it looks at what runs. A run past its limit, or one whose job
was taken from it, is interrupted; a coroutine whose job somebody asked to cancel is cancelled. A
run that was abandoned and goes on is disowned, and the supervisor replaces this process.

It also gives the pulse by which the supervisor sees that this process is not frozen. Once the
lease is lost it gives none: then this process should have ended, and did not.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from jobqueue.conf import KILL_SLACK_SECONDS
from jobqueue.engine.interrupts import interrupt
from jobqueue.engine.run_state import Stop
from jobqueue.engine.runs import Run
from jobqueue.events import emit
from jobqueue.runtime.ledger import Ledger
from jobqueue.storage.records import Fenced

logger = logging.getLogger("jobqueue")

LOOK_SECONDS = 0.2
"""Pause between two looks: what a time limit may be late."""


class Watchdog:
    """Looks after the runs of one process.

    runs: returns those that are held, also ended ones. has_lease: whether others think it alive.
    """

    def __init__(
        self, runs: Callable[[], Sequence[Run]], ledger: Ledger, has_lease: Callable[[], bool]
    ) -> None:
        self._runs = runs
        self._ledger = ledger
        self._has_lease = has_lease
        self._abandoned_at: dict[Fenced, float] = {}

    def start(self) -> None:
        """Look in a thread, for as long as this process lives."""
        threading.Thread(target=self._look_forever, name="jobqueue-watchdog", daemon=True).start()

    def look(self, now: float) -> None:
        """Look once. now: on the monotonic clock."""
        if self._has_lease():
            self._ledger.beat()
        runs = self._runs()
        for run in runs:
            stop = _reason_to_stop(run, now)
            if stop is not None and interrupt(run.state, stop):
                _tell(run, stop)
        self._disown(runs, now)

    def _look_forever(self) -> None:
        while True:
            try:
                self.look(time.monotonic())
            except Exception:
                logger.exception("The watchdog failed; it goes on")
            time.sleep(LOOK_SECONDS)

    def _disown(self, runs: Sequence[Run], now: float) -> None:
        """Ask for another process where an abandoned run goes on all the same."""
        abandoned = {(r.claim.id, r.claim.fence) for r in runs if r.state.abandoned}
        self._abandoned_at = {each: self._abandoned_at.get(each, now) for each in abandoned}
        for fenced, since in self._abandoned_at.items():
            if now - since > KILL_SLACK_SECONDS:
                self._ledger.disown(fenced)


def _reason_to_stop(run: Run, now: float) -> Stop | None:
    state = run.state
    if state.target is None:
        return None
    if state.abandoned:
        return Stop.ABANDONED
    if now - state.started > run.limit_seconds:
        return Stop.TIME_LIMIT
    return Stop.ASKED if state.cancel_reason is not None else None


def _tell(run: Run, stop: Stop) -> None:
    emit(
        "job.interrupted",
        level=logging.WARNING,
        job=run.claim.id,
        task=run.claim.task,
        why=stop.name.lower(),
        seconds=round(run.state.age_seconds, 1),
    )
