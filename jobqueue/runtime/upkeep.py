"""The loops that a supervisor runs beside its children, and what it tells people.

Promotion always; sweeps, pruning and reaping unless --no-maintenance. A health file for probes:
its time of change is fresh only while children are ready and the database answers.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from contextlib import suppress

from jobqueue.conf import Options
from jobqueue.events import emit
from jobqueue.runtime.ledger import Counters
from jobqueue.runtime.loop import Loop
from jobqueue.runtime.reaper import LOOK_SECONDS, Reaper
from jobqueue.runtime.scheduler import Scheduler
from jobqueue.runtime.terminal import StatusLine, shows_status
from jobqueue.runtime.worker_plan import WorkerPlan
from jobqueue.storage import storage_for
from jobqueue.storage.connections import discard, open_connection
from jobqueue.tasks import registry

REPORT_SECONDS = 1.0


class Upkeep:
    """The supervisor's own loops and reports."""

    def __init__(self, plan: WorkerPlan, options: Options, direct: bool) -> None:
        self._plan = plan
        self._options = options
        self._connection = open_connection(options.database, direct=direct)
        self.suspect_waits = False
        self._reported_at = 0.0
        self._is_report_failing = False
        self._last = Counters()
        self._status = StatusLine(sys.stdout) if shows_status(plan.log_format) else None
        self._status_text = ""
        scheduler = Scheduler(
            plan.backend,
            options,
            direct,
            should_stop=lambda: self._loops[0].is_stopping,
            only_promote=not plan.maintenance,
            queues=plan.queues,
        )
        self._scheduler = scheduler
        self._loops = [
            Loop("scheduler", scheduler.run_once, options.poll_seconds, scheduler.reset),
            Loop(
                "suspects",
                self._look_for_suspects,
                options.poll_seconds,
                lambda: discard(self._connection),
            ),
        ]
        if plan.maintenance:
            reaper = Reaper(options, direct)
            self._loops.append(Loop("reaper", reaper.run_once, LOOK_SECONDS, reaper.reset))

    def start(self) -> None:
        """Start the loops in threads."""
        for loop in self._loops:
            loop.start()

    def stop(self) -> None:
        """End the loops; a statement in flight gets a few seconds."""
        for loop in self._loops:
            loop.stop()
        for loop in self._loops:
            loop.join(5.0)

    @property
    def found_nothing(self) -> bool:
        """Whether the last rounds promoted nothing and no suspect waits."""
        return self._scheduler.empty_rounds >= 2 and not self.suspect_waits

    def report(self, counters: Counters, healthy: bool) -> None:
        """Once a second: write the health file, and count on a terminal's line of status."""
        now = time.monotonic()
        if now - self._reported_at < REPORT_SECONDS:
            self._draw_again()
            return
        try:
            self._write_reports(counters, healthy, now - self._reported_at)
        except OSError as error:  # a full disk, a folder that is gone: no reason to run no jobs
            self._report_failed(error)
        else:
            self._report_recovered()
        self._reported_at = now
        self._last = counters

    def _write_reports(self, counters: Counters, healthy: bool, seconds: float) -> None:
        failing = [loop.name for loop in self._loops if loop.is_failing]
        if self._plan.health_file is not None and healthy and not failing:
            temporary = self._plan.health_file.with_suffix(".tmp")
            temporary.write_text(_health_text(counters), encoding="utf-8")
            os.replace(temporary, self._plan.health_file)
        if self._status is not None:
            self._status_text = self._counts(counters, seconds)
            self._status.show(self._status_text)

    def _draw_again(self) -> None:
        """Bring back the line of status, which a line of a child's may have wiped out."""
        if self._status is not None:
            with suppress(OSError):
                self._status.show(self._status_text)

    def say_totals(self, counters: Counters) -> None:
        """Leave the counts of the whole run on a terminal, as its last line."""
        if self._status is not None:
            with suppress(OSError):
                self._status.end(_totals(counters))

    def _report_failed(self, error: OSError) -> None:
        if not self._is_report_failing:
            self._is_report_failing = True
            emit("report.failing", level=logging.WARNING, error=str(error))

    def _report_recovered(self) -> None:
        if self._is_report_failing:
            self._is_report_failing = False
            emit("report.recovered")

    def _counts(self, counters: Counters, seconds: float) -> str:
        rate = (counters.succeeded - self._last.succeeded) / seconds if self._reported_at else 0.0
        return f"{_totals(counters)}  {rate:,.0f}/s  running {counters.running:,}"

    def _look_for_suspects(self) -> bool:
        storage = storage_for(self._connection, self._options)
        queues = self._plan.queues or tuple(storage.live_queues())
        # Of tasks that this code base has: a process for another's would claim nothing.
        self.suspect_waits = bool(queues) and storage.alone_waiting(queues, registry.names()) > 0
        return False


def _totals(counters: Counters) -> str:
    return f"claimed {counters.claimed:,}  done {counters.succeeded:,}  failed {counters.failed:,}"


def _health_text(counters: Counters) -> str:
    return json.dumps(
        {
            "status": "ok",
            "at": time.time(),
            "running": counters.running,
            "succeeded": counters.succeeded,
            "failed": counters.failed,
        }
    )
