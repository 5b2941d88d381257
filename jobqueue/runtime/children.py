"""Worker processes as their supervisor has them: how one is started, told, and read once it ended.

Children are spawned, each its own process group, each holding the read end of a pipe whose only
write end is the supervisor's.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from uuid import UUID

from jobqueue.conf import ASYNC_SLOTS, Options
from jobqueue.ids import new_identity
from jobqueue.runtime.deadlines import Pulse, Sentence
from jobqueue.runtime.exit_codes import MISCONFIGURED, RECYCLED
from jobqueue.runtime.ledger import Ledger
from jobqueue.runtime.spec import ChildSpec
from jobqueue.runtime.worker_plan import WorkerPlan


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


# --- starting ----------------------------------------


def start_child(
    plan: WorkerPlan, options: Options, supervisor: UUID, *, direct: bool, alone: bool
) -> Child:
    """Return a new worker process. Raise OSError, with nothing left behind, if none can be.

    alone: it has one slot, for a suspect.
    """
    with ExitStack() as undo:
        slots = (1 if alone else plan.threads) + ASYNC_SLOTS
        ledger = Ledger.create(2 * slots + 4 * options.batch)
        undo.callback(ledger.close)
        reader, writer = os.pipe()
        undo.callback(os.close, writer)
        identity = new_identity()
        try:
            spec = _spec(plan, identity, supervisor, ledger, reader, direct=direct, alone=alone)
            process = _spawn(spec)
        finally:
            os.close(reader)
        undo.pop_all()
        return Child(identity, process, writer, ledger, alone)


def _spec(
    plan: WorkerPlan,
    identity: UUID,
    supervisor: UUID,
    ledger: Ledger,
    reader: int,
    *,
    direct: bool,
    alone: bool,
) -> ChildSpec:
    return ChildSpec(
        identity=identity.hex,
        supervisor=supervisor.hex,
        name=plan.name,
        backend=plan.backend,
        queues=plan.queues,
        threads=1 if alone else plan.threads,
        direct=direct,
        control_fd=reader,
        ledger_fd=ledger.descriptor,
        ledger_capacity=ledger.capacity,
        log_format=plan.log_format,
        log_level=plan.log_level,
        alone=alone,
        until_empty=plan.until_empty,
        max_jobs=None if alone else plan.max_jobs,
        max_memory_bytes=None if alone else plan.max_memory_bytes,
        reload=plan.reload and not alone,
        strict_order=plan.strict_order,
    )


def _spawn(spec: ChildSpec) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *_interpreter_flags(), "-m", "jobqueue.runtime.child", spec.dump()],
        pass_fds=(spec.control_fd, spec.ledger_fd),
        stdin=subprocess.DEVNULL,
        process_group=0,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )


def _interpreter_flags() -> list[str]:
    """Return the flags of this interpreter, so that children warn and optimize alike."""
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined,no-any-return]


# --- ended ----------------------------------------


def has_decided(child: Child, code: int) -> bool:
    """Return whether the child chose this end itself: a job may exit with the same code."""
    if code in (MISCONFIGURED, RECYCLED) and not child.ledger.counters().is_ready:
        return not child.ledger.started()  # before it could run anything
    return child.ledger.farewell() == code


def reason_of(code: int) -> str:
    """Return how an exit code is told to people."""
    if code < 0:
        with suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def bury_orphans(own: set[int]) -> None:
    """Wait for ended processes whose parents are gone; a container's first process inherits them.

    own: ids of children that somebody else waits for.
    """
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid in own:
                return  # the next turn collects it, and comes back here
            os.waitpid(ended.si_pid, 0)
