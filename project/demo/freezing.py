"""SIGSTOP and SIGCONT: making a zombie, and watching what becomes of it.

A worker that reports being inside a marked job, its effect written and not committed, is
stopped until it has been declared dead and another worker has done the job. Then it goes on
where it was: this is the worker that must not commit.
"""

import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psutil
from django.db import connections
from django.db.models import QuerySet

from jobqueue.models import Attempt, Job
from project.demo.facts import Thaw
from project.demo.fleet import Fleet
from project.demo.killing import Spared, children_of
from project.demo.refusal import Refusal, how_refused
from project.demo.waiting import wait_until
from project.shop.checkpoints import Checkpoint, take_reports
from project.shop.models import StockMovement

TAKEOVER_SECONDS = 60.0
"""The longest that a worker stays frozen."""
OUTCOME_SECONDS = 15.0
"""The longest wait for the thawed worker to be refused, or to do its damage."""


class Freezer:
    """Freeze and thaw `wanted` workers, each in another job, as they report to `directory`."""

    def __init__(
        self,
        fleet: Fleet,
        supervisors: Sequence[str],
        spared: Spared,
        *,
        directory: Path,
        wanted: int,
    ) -> None:
        self.thaws: list[Thaw] = []
        self._fleet = fleet
        self._supervisors = supervisors
        self._spared = spared
        self._directory = directory
        self._wanted = wanted
        self._frozen_jobs: set[str] = set()

    def run(self, stop: threading.Event) -> None:
        """Freeze whoever reports, until enough have been thawed or `stop` is set."""
        with ThreadPoolExecutor(self._wanted, thread_name_prefix="freezer") as pool:
            pending: list[Future[None]] = []
            while len(self.thaws) < self._wanted and not stop.wait(0.02):
                pending = [future for future in pending if not _ended(future)]
                for report in take_reports(self._directory):
                    if self._is_wanted(report):
                        self._frozen_jobs.add(report.job_id)
                        pending.append(pool.submit(self._freeze, report, stop))
        for future in pending:
            future.result()

    def _is_wanted(self, report: Checkpoint) -> bool:
        return len(self._frozen_jobs) < self._wanted and report.job_id not in self._frozen_jobs

    def _freeze(self, report: Checkpoint, stop: threading.Event) -> None:
        """Freeze the process that reported, and thaw it, unless it is out of reach by now."""
        name = self._supervisor_of(report.pid)
        if name is None:  # killed, or its supervisor was: it will exit and not come back
            self._frozen_jobs.discard(report.job_id)
            return
        held = (report.pid, self._fleet.pid(name))
        self._spared.add(*held)
        try:
            if _signal(report.pid, signal.SIGSTOP) and is_inside(report):
                self.thaws.append(self._thaw(report, name, stop))
            else:
                self._frozen_jobs.discard(report.job_id)
        finally:
            _signal(report.pid, signal.SIGCONT)
            self._spared.remove(*held)
            connections.close_all()

    def _thaw(self, report: Checkpoint, name: str, stop: threading.Event) -> Thaw:
        """Wait until the frozen worker's job is done by another, let it go on, and watch."""
        frozen_at = time.monotonic()
        taken_over = wait_until(lambda: done_by_another(report), TAKEOVER_SECONDS, stop)
        frozen_seconds = time.monotonic() - frozen_at
        offset = self._fleet.log_of(name).stat().st_size
        _signal(report.pid, signal.SIGCONT)
        refusal = self._watch(report, name, offset, stop) if taken_over else Refusal.NO_ZOMBIE
        return Thaw(
            pid=report.pid,
            order_id=report.order_id,
            frozen_seconds=frozen_seconds,
            refusal=refusal,
        )

    def _watch(self, report: Checkpoint, name: str, offset: int, stop: threading.Event) -> Refusal:
        """Return what stopped the thawed worker, from what it logs after `offset`."""
        refusal = Refusal.UNKNOWN

        def is_decided() -> bool:
            nonlocal refusal
            refusal = self._look(report, name, offset)
            return refusal is not Refusal.UNKNOWN

        wait_until(is_decided, OUTCOME_SECONDS, stop)
        # Whatever it was, this process has no life left in the database: its supervisor is to
        # start another one.
        _signal(report.pid, signal.SIGKILL)
        return refusal

    def _look(self, report: Checkpoint, name: str, offset: int) -> Refusal:
        exited = not _is_alive(report.pid)
        if StockMovement.objects.filter(order_id=report.order_id).count() > 1:
            return Refusal.NOT_REFUSED
        with self._fleet.log_of(name).open("rb") as log:
            log.seek(offset)
            lines = log.read().decode(errors="replace").splitlines()
        return how_refused(lines, pid=report.pid, job_id=report.job_id, exited=exited)

    def _supervisor_of(self, pid: int) -> str | None:
        for name in self._supervisors:
            if pid in children_of(self._fleet.pid(name)):
                return name
        return None


def is_inside(report: Checkpoint) -> bool:
    """Return whether the reported attempt has not ended."""
    return not attempt_of(report).exists()


def done_by_another(report: Checkpoint) -> bool:
    """Return whether the reported attempt is on record as lost, and the job has succeeded."""
    lost = attempt_of(report).filter(outcome="lost")
    return lost.exists() and Job.objects.filter(pk=report.job_id, state="succeeded").exists()


def attempt_of(report: Checkpoint) -> QuerySet[Attempt]:
    """Return the record of the reported attempt; there is one once it has ended."""
    return Attempt.objects.filter(job_id=report.job_id, fence=report.fence)


def _ended(future: Future[None]) -> bool:
    """Return whether `future` is done; raise what it raised."""
    if future.done():
        future.result()
        return True
    return False


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
