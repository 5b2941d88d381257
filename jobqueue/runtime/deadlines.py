"""What a supervisor ends its children for: a job past its deadline, a frozen process.

Threads cannot be stopped, and code in C, a blocking call or a loop that swallows everything does
not stop by itself; a process can be ended. The supervisor sees the need in the child's ledger, by
memory alone: neither the database nor the child needs to answer. It kills the child's whole
process group, so that programs which jobs have started end too, and starts another.

Who is charged is read after the process is gone, when nobody writes the ledger any more: the jobs
past their deadline then. The others of the process are given back, uncharged and no suspects.

What a supervisor leaves behind that dies after the kill, before the end was written: a worker
whose jobs a reaper finds lost, as after any crash.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from jobqueue.conf import KILL_SLACK_SECONDS, Options
from jobqueue.engine.recovery import Death
from jobqueue.events import emit
from jobqueue.runtime.ledger import Ledger
from jobqueue.storage.records import Fenced

if TYPE_CHECKING:
    from jobqueue.runtime.children import Child

LONGEST_LOOK_SECONDS = 1.0
"""What the time between two looks counts at most: a supervisor that was frozen itself, or slept
with its machine, has not seen its children be silent for so long."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Why a child was killed. before: jobs with a deadline before this are timed out."""

    reason: str
    before: float
    blamed: bool = False

    def as_death(self, worker: UUID, ledger: Ledger) -> Death:
        """Return what recovery has to know, once the process is gone."""
        return Death(
            worker,
            self.reason,
            started=ledger.started(),
            unwritten=ledger.unwritten(),
            blamed=self.blamed,
            stopped=not self.blamed,
            timed_out=ledger.started(past=self.before),
        )


@dataclass(slots=True)
class Pulse:
    """How long a child has given no sign of life, as far as its supervisor was there to see it."""

    number: int = 0
    silent_seconds: float = 0.0
    looked_at: float = 0.0

    def look(self, number: int, now: float) -> float:
        """Return the seconds of silence; a child that has not begun to live is not silent."""
        passed = min(now - self.looked_at, LONGEST_LOOK_SECONDS) if self.looked_at else 0.0
        self.looked_at = now
        if number == 0 or number != self.number:
            self.number, self.silent_seconds = number, 0.0
        else:
            self.silent_seconds += passed
        return self.silent_seconds


class Deadlines:
    """Judges the children of one supervisor.

    one_host: workers live by a lock, not by a lease.
    """

    def __init__(self, options: Options, one_host: bool) -> None:
        self._options = options
        self._one_host = one_host

    def enforce(self, children: Iterable[Child]) -> None:
        """Kill the children that must be ended, until the caller has seen them exit."""
        now = time.monotonic()
        for child in children:
            if child.sentence is None:
                child.sentence = self._judge(child, now)
                if child.sentence is not None:
                    _tell(child, child.sentence)
            if child.sentence is not None:
                with suppress(OSError):  # it has gone, or is tried again with the next look
                    os.killpg(child.pid, signal.SIGKILL)

    def _judge(self, child: Child, now: float) -> Sentence | None:
        silent = child.pulse.look(child.ledger.pulse(), now)
        before = now - KILL_SLACK_SECONDS
        if child.ledger.started(past=before):
            return Sentence("a job ran past its time limit", before)
        if child.ledger.disowned():
            return Sentence("a job that was taken from it went on", before)
        if self._is_frozen(child, silent):
            return Sentence("frozen", before, blamed=True)
        return None

    def _is_frozen(self, child: Child, silent_seconds: float) -> bool:
        """Return whether the child has surely lost its lease, and cannot notice that itself.

        On one host there is no lease to lose: a job that holds the interpreter for long is only
        slow there, and its deadline ends it.
        """
        options = self._options
        if silent_seconds <= options.lease_seconds + options.heartbeat_seconds:
            return False
        return options.self_exit and not (self._one_host and child.ledger.started())


def _tell(child: Child, sentence: Sentence) -> None:
    jobs: set[Fenced] = child.ledger.started(past=sentence.before)
    emit(
        "process.killed",
        level=logging.WARNING,
        worker=child.identity,
        pid=child.pid,
        why=sentence.reason,
        jobs=",".join(str(job_id) for job_id, _ in sorted(jobs)),
    )
