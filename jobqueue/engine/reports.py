"""What running jobs say about themselves, until a writer takes it: progress and log lines.

A job only puts something into memory: it never waits for the database, and never fails for it.
One writer per process takes what is there, some times a second (`jobqueue.runtime.reporter`).

Bounds: of the progress of a run the last value; of its log lines the first half of LOG_LINES and
the last half; of all that waits `MAX_WAITING_BYTES`, beyond which lines are dropped and counted.
What a killed process had not written yet is lost.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from jobqueue.conf import MAX_LOG_LINE_BYTES
from jobqueue.exceptions import InvalidArgument
from jobqueue.payload import storable_text
from jobqueue.storage import Storage
from jobqueue.storage.records import NewLine, NewProgress
from jobqueue.storage.reports import head_of

if TYPE_CHECKING:
    from jobqueue.engine.run_state import RunState
    from jobqueue.storage.records import Claim

MAX_WAITING_BYTES = 32 * 1024 * 1024
"""Text of log lines that a process keeps while the database is away."""
MAX_WAITING_RUNS = 10_000
"""Runs that a process keeps something of while the database is away."""
MAX_PROGRESS_MESSAGE_BYTES = 255
LINES_PER_WRITE = 1_000
"""Log lines in one statement: short, so that nobody waits for it."""


class Line(NamedTuple):
    """One logged record. at: monotonic seconds."""

    number: int
    at: float
    level: int
    logger: str
    message: str


class Amount(NamedTuple):
    """How far a run has come. at: monotonic seconds."""

    done: float
    total: float | None
    message: str
    at: float


class Report:
    """What one run has said and nobody has written yet."""

    __slots__ = ("amount", "claim", "head", "is_waiting", "numbers", "tail", "taken")

    def __init__(self, claim: Claim, keep: int) -> None:
        self.claim = claim
        self.amount: Amount | None = None
        self.taken: Amount | None = None
        self.head: deque[Line] = deque(maxlen=head_of(keep))
        self.tail: deque[Line] = deque(maxlen=keep - head_of(keep))
        self.numbers = count(1)
        self.is_waiting = False


class Reports:
    """The reports of a process. Any thread puts in, one thread takes.

    Single operations on a deque and plain attributes do without a lock: a process that a job
    forks while another thread held one could never log again.
    """

    def __init__(self, keep_lines: int) -> None:
        self.keep_lines = keep_lines
        self.dropped = 0
        self._waiting: deque[Report] = deque()
        self._bytes = 0
        self._pid = os.getpid()
        self._making = threading.Lock()

    # --- jobs put in ----------------------------------------

    def progress(self, run: RunState, done: float, total: float | None, message: str) -> None:
        """Keep this as the progress of a run. Raise InvalidArgument for what is no amount."""
        amount = Amount(
            checked_amount("done", done),
            None if total is None else checked_amount("total", total),
            storable_text(str(message), MAX_PROGRESS_MESSAGE_BYTES),
            time.monotonic(),
        )
        if os.getpid() != self._pid:
            return  # a copy of the process that a job forked: nobody takes what it says
        report = self._report_of(run)
        report.amount = amount
        self._announce(report)

    def log(self, run: RunState, record: logging.LogRecord) -> None:
        """Keep a log record as a line of a run; never raise."""
        if not self.keep_lines or os.getpid() != self._pid:
            return
        if self._bytes > MAX_WAITING_BYTES:
            self.dropped += 1
            return
        report = self._report_of(run)
        line = Line(
            number=next(report.numbers),
            at=time.monotonic(),
            level=min(record.levelno, 32_767),
            logger=storable_text(record.name, 255),
            message=text_of(record),
        )
        self._bytes += len(line.message)
        (report.head if line.number <= head_of(self.keep_lines) else report.tail).append(line)
        self._announce(report)

    def _report_of(self, run: RunState) -> Report:
        if run.report is None:
            with self._making:  # an async job may log in two threads at once
                if run.report is None:
                    run.report = Report(run.claim, self.keep_lines)
        return run.report

    def _announce(self, report: Report) -> None:
        """Let the writer come by; it takes the mark off before it reads, so it misses nothing."""
        if report.is_waiting:
            return
        if len(self._waiting) >= MAX_WAITING_RUNS:
            self.dropped += 1
            return
        report.is_waiting = True
        self._waiting.append(report)

    # --- the writer takes out ----------------------------------------

    def take(self) -> Batch:
        """Return what one write holds, the oldest run first; an empty batch if nothing waits."""
        taken_at = time.monotonic()
        batch = Batch([], [], self.keep_lines, taken_at)
        while self._waiting and not batch.is_full:
            report = self._waiting.popleft()
            report.is_waiting = False
            batch.add(report)
        if not self._waiting:
            self._bytes = 0  # also what threads that add at the same time have miscounted
        return batch

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def take_dropped(self) -> int:
        """Return how many reports were dropped since the last call."""
        dropped, self.dropped = self.dropped, 0
        return dropped


class Batch(NamedTuple):
    """What goes into one write. Ages are those at `taken_at`, in monotonic seconds."""

    progress: list[NewProgress]
    lines: list[NewLine]
    keep: int
    taken_at: float

    def add(self, report: Report) -> None:
        """Take what a report holds."""
        claim, amount = report.claim, report.amount
        if amount is not None and amount is not report.taken:
            report.taken = amount
            done, total, message, at = amount
            ago = max(self.taken_at - at, 0.0)
            self.progress.append(NewProgress(claim.id, claim.fence, done, total, message, ago))
        for line in (*_drained(report.head), *_drained(report.tail)):
            ago = max(self.taken_at - line.at, 0.0)
            new = NewLine(
                claim.id, claim.fence, line.number, line.level, line.logger, line.message, ago
            )
            self.lines.append(new)

    def write(self, storage: Storage) -> None:
        """Write it; the same again is harmless."""
        waited = time.monotonic() - self.taken_at  # long, if the database was away
        if self.progress:
            storage.write_progress([r._replace(ago=r.ago + waited) for r in self.progress])
        if self.lines:
            storage.write_lines([r._replace(ago=r.ago + waited) for r in self.lines], self.keep)

    @property
    def is_full(self) -> bool:
        return len(self.lines) >= LINES_PER_WRITE

    def __bool__(self) -> bool:
        return bool(self.progress or self.lines)


def _drained(lines: deque[Line]) -> Iterator[Line]:
    while lines:
        yield lines.popleft()


def checked_amount(name: str, value: object) -> float:
    """Return a number of `context.progress`; raise InvalidArgument if it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            amount = float(value)
        except OverflowError:
            amount = math.inf
        if math.isfinite(amount) and amount >= 0:
            return amount
    raise InvalidArgument(
        f"context.progress(): {name} must be a number from 0, not {value!r:.100}. Count what is "
        "done and what there is in all, such as progress(120, 500)."
    )


def text_of(record: logging.LogRecord) -> str:
    """Return a record's message, and its traceback, as text that any database takes."""
    try:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
    except Exception as error:
        text = f"{record.msg!r:.200} (its arguments do not fit: {error!r:.200})"
    return storable_text(text, MAX_LOG_LINE_BYTES)
