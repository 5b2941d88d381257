"""``runworker``: starts worker processes, sees them die, and keeps their number.

It runs no job and no code of a job; its main thread touches no database, so a signal or a dead
child is noticed at once whatever the database does. Children are spawned, each its own process
group, each holding the read end of a pipe whose only write end is here: when this process dies,
however, they read the end of it, drain and exit.

What it leaves behind when it is killed …
- children that drain: they beat until their last job has ended.
- a child that dies after it: noticed by a reaper (life lock or lease).
"""

from __future__ import annotations

import logging
import os
import signal
import time

from django.db import connections

from jobqueue import signals
from jobqueue.conf import Options
from jobqueue.engine import delivery
from jobqueue.engine.recovery import Death
from jobqueue.events import emit
from jobqueue.ids import new_identity
from jobqueue.runtime.child_recovery import ChildRecovery
from jobqueue.runtime.children import Child, bury_orphans, has_decided, reason_of, start_child
from jobqueue.runtime.deadlines import Deadlines
from jobqueue.runtime.exit_codes import ABORTED, CLEAN, LEASE_LOST, MISCONFIGURED, RECYCLED
from jobqueue.runtime.ledger import ENOUGH_EMPTY_LOOKS, Counters
from jobqueue.runtime.restarts import Restarts
from jobqueue.runtime.shutdown import STOP_SIGNALS, SignalBox
from jobqueue.runtime.stop_orders import ABORT, DRAIN
from jobqueue.runtime.terminal import shows_status, waiting_for
from jobqueue.runtime.upkeep import Upkeep
from jobqueue.runtime.worker_plan import WorkerPlan
from jobqueue.storage import storage_for

logger = logging.getLogger("jobqueue")

TICK_SECONDS = 0.25
"""Longest pause of the main loop between two looks at everything."""
ABORT_SECONDS = 1.0
"""How long a child may take to exit once it was told to, before it is killed."""
RECOVERY_SECONDS = 5.0
"""How long this process goes on giving back what its children held, once it is to end at once."""
SIGNALS_SECONDS = 5.0
"""How long this process waits at its end for receivers of signals about jobs that died."""


class Supervisor:
    """One ``runworker``; `run` returns its exit code."""

    def __init__(self, plan: WorkerPlan, options: Options, direct: bool) -> None:
        self.plan = plan
        self.options = options
        self.direct = direct
        self.identity = new_identity()
        self.children: list[Child] = []
        self._recovery = ChildRecovery(options, direct)
        self._upkeep = Upkeep(plan, options, direct)
        self._deadlines = Deadlines(options, _is_one_host(options))
        self._stop_signals = 0
        self._abort_at: float | None = None
        self._is_aborting = False
        self._exit_code = CLEAN
        self._restarts = Restarts(plan.processes)
        self._drained = 0
        self._totals = Counters()

    def run(self) -> int:
        """Run until stopped or, with until_empty, until nothing is left to do."""
        box = SignalBox(children=True)
        emit(
            "worker.started",
            worker=self.identity,
            processes=self.plan.processes,
            threads=self.plan.threads,
            queues=",".join(self.plan.queues) or "all",
            sessions=self._sessions,
        )
        signals.worker_started.send_robust(
            sender=Supervisor, worker=self.identity, queues=self.plan.queues
        )
        delivery.begin()
        self._recovery.loop.start()
        self._upkeep.start()
        try:
            while not self._is_over():
                self._turn(box.wait(TICK_SECONDS))
        finally:
            self._end(box)
        return self._exit_code

    @property
    def _sessions(self) -> str:
        """How workers prove to be alive, for the log."""
        if connections[self.options.database].vendor == "sqlite":
            return "one host: life files"
        return "direct" if self.direct else "pooled: leases and polling only"

    def counters(self) -> Counters:
        """Return the sum over all children, past and present."""
        return _sum([self._totals, *(child.ledger.counters() for child in self.children)])

    # --- one turn ----------------------------------------

    def _turn(self, received: list[int]) -> None:
        for number in received:
            if number in STOP_SIGNALS:
                self._on_stop_signal(signal.Signals(number).name)
        self._collect()
        self._deadlines.enforce(self.children)
        if not self._is_stopping:
            self._start_missing()
            if self.plan.until_empty and self._is_idle():
                self._drain("nothing left to do")
        elif self.children and self._is_grace_over:
            self._abort("the grace is over")
        self._upkeep.report(self.counters(), self._is_healthy())

    @property
    def _is_stopping(self) -> bool:
        return self._abort_at is not None

    @property
    def _is_grace_over(self) -> bool:
        return self._abort_at is not None and time.monotonic() >= self._abort_at

    def _is_over(self) -> bool:
        """Whether to return: not before what the children held is given back, within the grace.

        A database that is away must not keep this process; then reapers find what is left.
        """
        ended = self._is_stopping and not self.children
        return ended and (self._recovery.is_done or self._is_grace_over)

    def _is_healthy(self) -> bool:
        return not self._is_stopping and any(c.ledger.counters().is_ready for c in self.children)

    def _is_idle(self) -> bool:
        workers = [c for c in self.children if not c.alone]
        idle = all(c.ledger.counters().empty_looks >= ENOUGH_EMPTY_LOOKS for c in workers)
        return (
            len(workers) == self._wanted
            and len(workers) == len(self.children)
            and idle
            and self._upkeep.found_nothing
            and self._recovery.is_done
        )

    # --- children ----------------------------------------

    def _start_missing(self) -> None:
        if self._restarts.rest:
            return
        try:
            workers = sum(child.has_place for child in self.children)
            for _ in range(self._wanted - workers):
                self.children.append(self._start(alone=False))
            if self._is_lonely_wanted:
                self.children.append(self._start(alone=True))
        except OSError as error:  # no process, memory or descriptor left: the others run on
            self._restarts.note_failed_start(error)
        else:
            self._restarts.note_start()

    @property
    def _is_lonely_wanted(self) -> bool:
        """Whether to start a process for a suspect: the last may have found that others took it."""
        is_there = any(child.alone for child in self.children)
        return self._upkeep.suspect_waits and not is_there and not self._restarts.lonely_rest

    @property
    def _wanted(self) -> int:
        """How many worker processes there should be: drained ones are not replaced."""
        return self.plan.processes - self._drained

    def _start(self, *, alone: bool) -> Child:
        return start_child(self.plan, self.options, self.identity, direct=self.direct, alone=alone)

    def _collect(self) -> None:
        for child in list(self.children):
            code = child.process.poll()
            if code is None:
                continue
            self.children.remove(child)
            self._on_exit(child, code)
            child.close()
        if os.getpid() == 1:
            bury_orphans({child.process.pid for child in self.children})

    def _on_exit(self, child: Child, code: int) -> None:
        self._totals = _sum([self._totals, child.ledger.counters()])
        if child.alone:
            self._restarts.note_lonely(child.ledger.counters().claimed)
        started = child.ledger.started()
        decision = code if has_decided(child, code) else None
        sentence = child.sentence if code == -signal.SIGKILL else None
        stopped = decision in (CLEAN, RECYCLED) or self._is_aborting
        on_purpose = stopped or sentence is not None
        emit(
            "process.exited",
            level=logging.INFO if on_purpose else logging.WARNING,
            worker=child.identity,
            code=code,
            jobs=len(started),
        )
        if decision == MISCONFIGURED:
            self._exit_code = MISCONFIGURED
            self._drain("a worker process cannot be set up")
        elif not on_purpose:
            self._restarts.note_crash(child)
        elif decision == CLEAN and not child.alone and not self._is_stopping:
            self._note_drained()
        if stopped and started:
            self._exit_code = ABORTED
        death = Death(
            child.identity,
            "stopped" if stopped else reason_of(code),
            started=started,
            unwritten=child.ledger.unwritten(),
            blamed=not stopped and decision != LEASE_LOST,
            stopped=stopped,
        )
        self._recovery.report(
            sentence.as_death(child.identity, child.ledger) if sentence else death
        )

    def _note_drained(self) -> None:
        """Do without a process that an operator has drained; without the last one, stop."""
        self._drained += 1
        if not self._wanted:
            self._drain("every worker process was drained")

    # --- stopping ----------------------------------------

    def _on_stop_signal(self, name: str) -> None:
        self._stop_signals += 1
        if self._stop_signals == 1:
            self._drain(name)
        else:
            self._abort(name)

    def _drain(self, why: str) -> None:
        """Claim nothing more; jobs in hand get the grace to end."""
        if self._is_stopping:
            return
        for child in self.children:
            child.order(DRAIN)
        emit("worker.draining", why=why, grace_seconds=self.options.grace_seconds)
        running = self.counters().running
        if running and shows_status(self.plan.log_format):
            logger.info(waiting_for(running, self.options.grace_seconds))
        self._abort_at = time.monotonic() + self.options.grace_seconds

    def _abort(self, why: str) -> None:
        """Children exit at once; their jobs roll back and are given back after ``waitpid``.

        They are told first, and killed only if they have not gone a moment later.
        """
        if self.children:
            emit("worker.aborting", level=logging.WARNING, why=why)
        for child in self.children:
            if self._is_aborting:
                child.process.kill()
            else:
                child.order(ABORT)
        self._is_aborting = True
        self._abort_at = time.monotonic() + ABORT_SECONDS

    def _end(self, box: SignalBox) -> None:
        self._is_aborting = True  # what is still there (after an error of ours) is ended on purpose
        for child in self.children:
            child.process.kill()
            self._on_exit(child, child.process.wait())
        self._upkeep.stop()
        self._recovery.close(RECOVERY_SECONDS)
        delivery.end(SIGNALS_SECONDS)
        signals.worker_stopped.send_robust(sender=Supervisor, worker=self.identity)
        emit("worker.stopped", worker=self.identity, code=self._exit_code)
        self._upkeep.say_totals(self.counters())
        box.close()


def _is_one_host(options: Options) -> bool:
    return storage_for(connections[options.database], options).one_host


def _sum(parts: list[Counters]) -> Counters:
    return Counters(
        claimed=sum(p.claimed for p in parts),
        succeeded=sum(p.succeeded for p in parts),
        failed=sum(p.failed for p in parts),
        running=sum(p.running for p in parts[1:]),
    )
