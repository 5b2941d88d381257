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
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from django.db import connections

from jobqueue import signals
from jobqueue.conf import ASYNC_SLOTS, Options
from jobqueue.engine import delivery
from jobqueue.engine.recovery import Death
from jobqueue.events import emit
from jobqueue.ids import new_identity
from jobqueue.runtime.deadlines import Deadlines, Pulse, Sentence
from jobqueue.runtime.exit_codes import ABORTED, CLEAN, LEASE_LOST, MISCONFIGURED, RECYCLED
from jobqueue.runtime.janitor import Janitor
from jobqueue.runtime.ledger import ENOUGH_EMPTY_LOOKS, Counters, Ledger
from jobqueue.runtime.orders import ABORT, DRAIN
from jobqueue.runtime.shutdown import STOP_SIGNALS, SignalBox
from jobqueue.runtime.spec import ChildSpec
from jobqueue.runtime.upkeep import Upkeep
from jobqueue.storage import storage_for

logger = logging.getLogger("jobqueue")

TICK_SECONDS = 0.25
"""Longest pause of the main loop between two looks at everything."""
ABORT_SECONDS = 1.0
"""How long a child may take to exit once it was told to, before it is killed."""
QUICK_DEATH_SECONDS = 2.0
"""A child that lived no longer is started again with back-off."""
JANITOR_SECONDS = 5.0
"""How long this process goes on giving back what its children held, once it is to end at once."""
SIGNALS_SECONDS = 5.0
"""How long this process waits at its end for receivers of signals about jobs that died."""
MAX_RESTART_PAUSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """What a supervisor is to run; the command line, checked."""

    backend: str
    queues: tuple[str, ...]
    processes: int = 1
    threads: int = 4
    maintenance: bool = True
    until_empty: bool = False
    max_jobs: int | None = None
    max_memory_bytes: int | None = None
    reload: bool = False
    health_file: Path | None = None
    name: str = ""
    log_format: str = "auto"
    log_level: str = "info"
    strict_order: bool = False


@dataclass(slots=True)
class Child:
    """One worker process and what is shared with it."""

    identity: UUID
    process: subprocess.Popen[bytes]
    control: int
    ledger: Ledger
    alone: bool
    started_at: float = field(default_factory=time.monotonic)
    pulse: Pulse = field(default_factory=Pulse)
    sentence: Sentence | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def has_place(self) -> bool:
        """Whether it counts as one of the wanted processes: one that leaves has made room."""
        return not self.alone and not self.ledger.counters().is_leaving

    def order(self, letter: bytes) -> None:
        """Write an order into the child's pipe; a child that is gone needs none."""
        with suppress(OSError):
            os.write(self.control, letter)

    def close(self) -> None:
        """Let go of the pipe and the shared memory."""
        with suppress(OSError):
            os.close(self.control)
        self.ledger.close()


class Supervisor:
    """One ``runworker``; `run` returns its exit code."""

    def __init__(self, plan: WorkerPlan, options: Options, direct: bool) -> None:
        self.plan = plan
        self.options = options
        self.direct = direct
        self.identity = new_identity()
        self.children: list[Child] = []
        self._janitor = Janitor(options, direct)
        self._upkeep = Upkeep(plan, options, direct)
        self._deadlines = Deadlines(options, _is_one_host(options))
        self._stop_signals = 0
        self._abort_at: float | None = None
        self._is_aborting = False
        self._exit_code = CLEAN
        self._quick_deaths = 0
        self._failed_starts = 0
        self._idle_lonely = 0
        self._lonely_at = 0.0
        self._restart_at = 0.0
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
        self._janitor.loop.start()
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
        return ended and (self._janitor.is_done or self._is_grace_over)

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
            and self._janitor.is_done
        )

    # --- children ----------------------------------------

    def _start_missing(self) -> None:
        if time.monotonic() < self._restart_at:
            return
        try:
            workers = sum(child.has_place for child in self.children)
            for _ in range(self._wanted - workers):
                self.children.append(self._start(alone=False))
            if self._is_lonely_wanted:
                self.children.append(self._start(alone=True))
        except OSError as error:  # no process, memory or descriptor left: the others run on
            self._could_not_start(error)
        else:
            self._failed_starts = 0

    @property
    def _is_lonely_wanted(self) -> bool:
        """Whether to start a process for a suspect: the last may have found that others took it."""
        is_there = any(child.alone for child in self.children)
        rests = time.monotonic() < self._lonely_at
        return self._upkeep.suspect_waits and not is_there and not rests

    def _note_lonely(self, claimed: int) -> None:
        """Take longer and longer pauses while processes for a suspect claim nothing."""
        self._idle_lonely = 0 if claimed else self._idle_lonely + 1
        if self._idle_lonely:
            self._lonely_at = time.monotonic() + _pause(self._idle_lonely)

    @property
    def _wanted(self) -> int:
        """How many worker processes there should be: drained ones are not replaced."""
        return self.plan.processes - self._drained

    def _could_not_start(self, error: OSError) -> None:
        if not self._failed_starts:
            emit("process.not_started", level=logging.ERROR, error=str(error))
        self._failed_starts += 1
        self._pause_starts(self._failed_starts)

    def _start(self, *, alone: bool) -> Child:
        """Return a new worker process. Raise OSError, with nothing left behind, if none can be."""
        with ExitStack() as undo:
            slots = (1 if alone else self.plan.threads) + ASYNC_SLOTS
            ledger = Ledger.create(2 * slots + 4 * self.options.batch)
            undo.callback(ledger.close)
            reader, writer = os.pipe()
            undo.callback(os.close, writer)
            try:
                child = self._spawn(ledger, reader, writer, alone)
            finally:
                os.close(reader)
            undo.pop_all()
            return child

    def _spawn(self, ledger: Ledger, reader: int, writer: int, alone: bool) -> Child:
        identity = new_identity()
        spec = ChildSpec(
            identity=identity.hex,
            supervisor=self.identity.hex,
            name=self.plan.name,
            backend=self.plan.backend,
            queues=self.plan.queues,
            threads=1 if alone else self.plan.threads,
            direct=self.direct,
            control_fd=reader,
            ledger_fd=ledger.descriptor,
            ledger_capacity=ledger.capacity,
            log_format=self.plan.log_format,
            log_level=self.plan.log_level,
            alone=alone,
            until_empty=self.plan.until_empty,
            max_jobs=None if alone else self.plan.max_jobs,
            max_memory_bytes=None if alone else self.plan.max_memory_bytes,
            reload=self.plan.reload and not alone,
            strict_order=self.plan.strict_order,
        )
        process = subprocess.Popen(
            [sys.executable, *_interpreter_flags(), "-m", "jobqueue.runtime.child", spec.dump()],
            pass_fds=(reader, ledger.descriptor),
            stdin=subprocess.DEVNULL,
            process_group=0,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        return Child(identity, process, writer, ledger, alone)

    def _collect(self) -> None:
        for child in list(self.children):
            code = child.process.poll()
            if code is None:
                continue
            self.children.remove(child)
            self._on_exit(child, code)
            child.close()
        if os.getpid() == 1:
            _bury_orphans({child.process.pid for child in self.children})

    def _on_exit(self, child: Child, code: int) -> None:
        self._totals = _sum([self._totals, child.ledger.counters()])
        if child.alone:
            self._note_lonely(child.ledger.counters().claimed)
        started = child.ledger.started()
        decision = code if _has_decided(child, code) else None
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
            self._slow_down(child)
        elif decision == CLEAN and not child.alone and not self._is_stopping:
            self._note_drained()
        if stopped and started:
            self._exit_code = ABORTED
        death = Death(
            child.identity,
            "stopped" if stopped else _reason(code),
            started=started,
            unwritten=child.ledger.unwritten(),
            blamed=not stopped and decision != LEASE_LOST,
            stopped=stopped,
        )
        self._janitor.report(sentence.as_death(child.identity, child.ledger) if sentence else death)

    def _note_drained(self) -> None:
        """Do without a process that an operator has drained; without the last one, stop."""
        self._drained += 1
        if not self._wanted:
            self._drain("every worker process was drained")

    def _slow_down(self, child: Child) -> None:
        """Start again at once after a crash, with back-off where children die at birth."""
        if time.monotonic() - child.started_at > QUICK_DEATH_SECONDS or child.alone:
            self._quick_deaths = 0
            return
        self._quick_deaths += 1
        if self._quick_deaths > self.plan.processes:
            self._pause_starts(self._quick_deaths - self.plan.processes)

    def _pause_starts(self, number: int) -> None:
        """Start nothing for a while, longer each time in a row."""
        self._restart_at = time.monotonic() + _pause(number)

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
        emit("worker.draining", why=why, grace_seconds=self.options.grace_seconds)
        self._abort_at = time.monotonic() + self.options.grace_seconds
        for child in self.children:
            child.order(DRAIN)

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
        self._janitor.close(JANITOR_SECONDS)
        delivery.end(SIGNALS_SECONDS)
        signals.worker_stopped.send_robust(sender=Supervisor, worker=self.identity)
        emit("worker.stopped", worker=self.identity, code=self._exit_code)
        self._upkeep.say_totals(self.counters())
        box.close()


def _pause(number: int) -> float:
    """Return the seconds to rest after the `number`-th failure in a row."""
    return min(0.5 * 2.0 ** min(number, 10), MAX_RESTART_PAUSE_SECONDS)


def _is_one_host(options: Options) -> bool:
    return storage_for(connections[options.database], options).one_host


def _bury_orphans(own: set[int]) -> None:
    """Wait for ended processes whose parents are gone; a container's first process inherits them.

    own: ids of children that somebody else waits for.
    """
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid in own:
                return  # the next turn collects it, and comes back here
            os.waitpid(ended.si_pid, 0)


def _has_decided(child: Child, code: int) -> bool:
    """Return whether the child chose this end itself: a job may exit with the same code."""
    if code in (MISCONFIGURED, RECYCLED) and not child.ledger.counters().is_ready:
        return not child.ledger.started()  # before it could run anything
    return child.ledger.farewell() == code


def _reason(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def _sum(parts: list[Counters]) -> Counters:
    return Counters(
        claimed=sum(p.claimed for p in parts),
        succeeded=sum(p.succeeded for p in parts),
        failed=sum(p.failed for p in parts),
        running=sum(p.running for p in parts[1:]),
    )


def _interpreter_flags() -> list[str]:
    """Return the flags of this interpreter, so that children warn and optimize alike."""
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined,no-any-return]
