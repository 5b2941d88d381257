"""Writing down how executions ended, and finding out when it is unknown whether that worked.

What a process leaves behind that dies …
- before `flush`: running rows, reaped as lost. They had no effects (those with effects finish in
  their own transaction), or were not atomic: at-least-once.
- between `flush` and clearing its ledger: ended rows; the supervisor sees "may have been running"
  for jobs that are running under it no more, and touches none of them.
A connection lost in `flush` leaves it unknown whether the batch was committed: it is sent again,
and what then does not match is looked up in the attempt table.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError, connections
from django.dispatch import Signal

from jobqueue import signals
from jobqueue.compat import (
    signal_is_heard,
    task_backends,
    task_finished,
    task_started,
)
from jobqueue.conf import CHUNK_CHARACTERS, Options, job_options
from jobqueue.engine.delivery import deliver
from jobqueue.engine.environment import Environment
from jobqueue.engine.halves import write_in_halves
from jobqueue.engine.hygiene import clean_connections
from jobqueue.engine.outcomes import Ended, decide_unrunnable
from jobqueue.events import emit
from jobqueue.states import FINISHED, Outcome, State
from jobqueue.storage import Storage
from jobqueue.storage.connections import discard
from jobqueue.storage.errors import may_pass
from jobqueue.storage.moving import SUPERSEDED
from jobqueue.storage.records import Claim, EndedJob

logger = logging.getLogger("jobqueue")

Fenced = tuple[UUID, int]
"""A job's id and the fence of one claim of it."""

CommitVerdict = Literal["committed", "not committed", "lease lost"]

END_SESSION_SECONDS = 10.0
"""How long to wait for a session that was told to end; its idle time-out is shorter."""


# --- unknown COMMIT ----------------------------------------


def resolve_unknown_commit(
    environment: Environment, claim: Claim, pid: int | None
) -> CommitVerdict:
    """Return whether the transaction that finished `claim` on the lost session `pid` committed.

    Asks on new connections until it knows, or until this process has lost its lease. Our attempt
    row is the witness. Without one, and the guard still matching, the finish and COMMIT may still
    be queued in the old session: it is ended, and gone, before the answer is "not committed".
    """
    pause = 0.05
    while environment.is_alive():
        try:
            with environment.fresh_storage() as storage:
                verdict = _look(storage, claim)
                if verdict == "not committed" and pid is not None and environment.direct:
                    if not _end_session(storage, pid, claim):
                        continue
                    verdict = _look(storage, claim)
            emit("job.commit_resolved", job=claim.id, fence=claim.fence, verdict=verdict)
            return verdict
        except (DatabaseError, InterfaceError) as error:
            logger.debug("Cannot ask for the fate of job %s yet: %s", claim.id, error)
            time.sleep(pause * (0.5 + random.random()))
            pause = min(pause * 2, 1.0)
    return "lease lost"


def _look(storage: Storage, claim: Claim) -> CommitVerdict:
    verdict = storage.verdict(claim)
    if verdict.outcome == Outcome.SUCCEEDED:
        return "committed"
    if verdict.outcome is not None or not verdict.still_ours:
        return "lease lost"
    return "not committed"


def _end_session(storage: Storage, pid: int, claim: Claim) -> bool:
    """End the old session and wait until it is gone; return whether it is."""
    until = time.monotonic() + END_SESSION_SECONDS
    while not storage.end_session(pid, claim.worker):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


# --- batches ----------------------------------------


def flush(storage: Storage, ended: Sequence[Ended], environment: Environment) -> list[Ended]:
    """Write the ends of executions in batches; then tell signals and events.

    Return those that could not be written now, to be given again a moment later: a row that is
    locked is not waited for, as all others would wait with it. Raise the error if the database is
    away (`is_away`): nothing is forgotten, call again with the same `ended`.

    A success that the database refuses is split from its batch and recorded as a failure; an end
    that it refuses in any form is logged and returned, too: its job stays held, so that nobody
    runs it again before the reaper takes it at its deadline. What is no longer ours is reported
    as a lost lease.
    """
    batch = _Batch(storage, ended, environment.options)
    batch.write()
    _announce(batch.written())
    announce_superseded(batch.superseded)
    if environment.test_connection is None:
        clean_connections()  # subscribers to events ran in this thread
    return [e for e in ended if _fenced(e) in batch.left]


class _Batch:
    """The ends of one flush.

    ends: each as what it is written. unmatched: rows that a statement passed over. left: ends to
    be written later. lost: ends of jobs that are somebody else's. superseded: waiting jobs that
    were ended, as one of these waits again with their unique key.
    """

    def __init__(self, storage: Storage, ended: Sequence[Ended], options: Options) -> None:
        self.ends = {_fenced(e): e for e in ended}
        self.left: set[Fenced] = set()
        self.lost: set[Fenced] = set()
        self.superseded: list[EndedJob] = []
        self._storage = storage
        self._options = options
        self._unmatched: set[Fenced] = set()

    def write(self) -> None:
        """Write what is to be written, and find out about what was passed over."""
        for part in _bounded(e for e in self.ends.values() if e.result is not None):
            self._in_halves(part, self._finish, self._end_as_failure)
        for part in _bounded(e for e in self.ends.values() if e.failure is not None):
            self._in_halves(part, self._end, self._end_in_ascii)
        if self._unmatched:
            self._look_up()

    def written(self) -> list[Ended]:
        """Return the ends that stand in the database now; tell of those that are lost."""
        found = []
        for fenced, one in self.ends.items():
            if fenced in self.left:
                continue
            if fenced in self.lost or not (one.is_success or one.failure):
                emit("job.lease_lost", level=logging.WARNING, job=fenced[0], fence=fenced[1])
            else:
                found.append(one)
        return found

    def _finish(self, part: Sequence[Ended]) -> list[Fenced]:
        return self._storage.finish_many(part[0].claim.worker, [e.as_success() for e in part])

    def _end(self, part: Sequence[Ended]) -> list[Fenced]:
        moves = self._storage.end_many([e.as_ending() for e in part])
        if moves.superseded:
            self._note_superseded(part, moves.superseded)
        return moves

    def _note_superseded(self, part: Sequence[Ended], superseded: Sequence[EndedJob]) -> None:
        """Note which of these jobs were cancelled instead, and which others gave way to them."""
        jobs = {job.id: job for job in superseded}
        for one in part:
            if jobs.pop(one.claim.id, None) and one.failure is not None:
                gave_way = replace(one.failure, state=State.CANCELLED, reason=SUPERSEDED)
                self.ends[_fenced(one)] = replace(one, failure=gave_way)
        self.superseded += jobs.values()

    def _in_halves(
        self,
        part: Sequence[Ended],
        write: Callable[[Sequence[Ended]], list[Fenced]],
        refused: Callable[[Ended, DatabaseError], None],
    ) -> None:
        """Write `part`; leave for later what is refused alone by a time-out or a conflict only."""

        def refused_alone(one: Ended, error: DatabaseError) -> None:
            if may_pass(error):  # it says nothing against the row
                self.left.add(_fenced(one))
            else:
                refused(one, error)

        write_in_halves(part, lambda some: self._unmatched.update(write(some)), refused_alone)

    def _end_as_failure(self, one: Ended, error: DatabaseError) -> None:
        options = job_options(one.claim.backend, self._options)
        failure = decide_unrunnable(one.claim, error, options)
        self.ends[_fenced(one)] = replace(one, result=None, failure=failure)

    def _end_in_ascii(self, one: Ended, error: DatabaseError) -> None:
        """Try once more with text that a database of any encoding takes."""
        assert one.failure is not None
        text = one.failure.error
        plain = replace(one, failure=replace(one.failure, error=text and text.in_ascii()))
        self.ends[_fenced(one)] = plain
        self._in_halves([plain], self._end, self._leave)

    def _leave(self, one: Ended, error: DatabaseError) -> None:
        logger.error("The end of job %s cannot be stored: %s", one.claim.id, error)
        self.left.add(_fenced(one))

    def _look_up(self) -> None:
        """Find out about rows that were passed over: locked, lost, or written before.

        Before: by a try whose answer was lost. A time-out or a forced cancel of this very claim may
        also be a reaper's or an operator's, who has told of it: nobody is to hear of it twice.
        """
        found = self._storage.verdicts([self.ends[each].claim for each in self._unmatched])
        for fenced in self._unmatched:
            one, verdict = self.ends[fenced], found[fenced]
            expected = Outcome.SUCCEEDED if one.failure is None else one.failure.outcome
            if verdict.outcome == expected and expected not in _ALSO_WRITTEN_BY_OTHERS:
                continue
            (self.left if verdict.still_ours else self.lost).add(fenced)


_ALSO_WRITTEN_BY_OTHERS = frozenset({Outcome.TIMED_OUT, Outcome.CANCELLED})


def _bounded(ended: Iterable[Ended]) -> Iterator[list[Ended]]:
    """Cut ends into the parts that go in one statement: bounded in text."""
    part: list[Ended] = []
    room = CHUNK_CHARACTERS
    for one in ended:
        size = one.text_size
        if part and size > room:
            yield part
            part, room = [], CHUNK_CHARACTERS
        part.append(one)
        room -= size
    if part:
        yield part


def _fenced(ended: Ended) -> Fenced:
    return ended.claim.id, ended.claim.fence


# --- announcements ----------------------------------------


def _announce(ended: Sequence[Ended]) -> None:
    """Send signals and events for ends that are committed; never raises."""
    for one in ended:
        if one.failure is not None:
            announce_failure(one)
    finished = [e for e in ended if e.is_success or (e.failure and e.failure.state in FINISHED)]
    failed = any(not e.is_success for e in finished)
    if signal_is_heard(task_finished, logging.ERROR if failed else logging.INFO):
        for one in finished:
            announce_finished(one.claim.backend, one.claim.id)


def announce_failure(one: Ended) -> None:
    """Emit the event of an attempt that did not succeed, and the signal of a job's death."""
    claim, failure = one.claim, one.failure
    assert failure is not None
    emit(
        f"job.{failure.state}",
        level=logging.WARNING if failure.charged else logging.INFO,
        job=claim.id,
        task=claim.task,
        outcome=failure.outcome,
        error=failure.error.class_path if failure.error else "",
        reason=failure.reason,
    )
    if failure.state == State.DEAD:
        announce_death(claim.id, claim.task, failure.reason)


def announce_superseded(jobs: Sequence[EndedJob]) -> None:
    """Tell of jobs that were ended, not by an attempt, as another of their unique key lives."""
    for job in jobs:
        emit("job.cancelled", job=job.id, task=job.task, outcome="", error="", reason=SUPERSEDED)
    announce_all_finished(jobs)


def announce_all_finished(jobs: Sequence[EndedJob]) -> None:
    """Send ``task_finished`` for jobs that ended without success, if anybody listens."""
    if signal_is_heard(task_finished, logging.ERROR):
        for job in jobs:
            announce_finished(job.backend, job.id)


def announce_death(job_id: object, task: str, reason: str) -> None:
    """Send `jobqueue.signals.job_died`, where that holds nobody up; never raise."""
    if signals.job_died.receivers:
        deliver(partial(_send_death, job_id, task, reason))


def _send_death(job_id: object, task: str, reason: str) -> None:
    try:
        answers = signals.job_died.send_robust(sender=None, job_id=job_id, task=task, reason=reason)
    except BaseException:
        logger.exception("A receiver of job_died raised to the end of its thread; it goes on")
        return
    _log_errors(answers)


def announce_finished(backend_alias: str, job_id: object) -> None:
    """Send Django's ``task_finished`` for a job that has ended, where that holds nobody up; never
    raise.
    """
    deliver(partial(_send_result, task_finished, backend_alias, job_id))


def announce_started(claim: Claim) -> bool:
    """Send Django's ``task_started`` for a job whose code is about to run; never raise.

    Return whether anybody heard it: receivers may leave this thread's connections in any state.
    """
    if not signal_is_heard(task_started):
        return False
    _send_result(task_started, claim.backend, claim.id)
    return True


def _send_result(signal: Signal, backend_alias: str, job_id: object) -> None:
    try:
        backend = task_backends[backend_alias]
        answers = signal.send_robust(sender=type(backend), task_result=_read(backend, job_id))
    except BaseException:  # SystemExit of a receiver must not end a thread of the worker
        logger.exception("The signal for job %s could not be sent to all receivers", job_id)
        return
    _log_errors(answers)


def _read(backend: Any, job_id: object) -> Any:
    """Return a job's result; on a new session where the old one turns out to be gone."""
    try:
        return backend.get_result(str(job_id))
    except (OperationalError, InterfaceError):
        connection = connections[backend.job_options.database]
        if connection.in_atomic_block:
            raise
        discard(connection)
        return backend.get_result(str(job_id))


def _log_errors(answers: list[tuple[Any, Any]]) -> None:
    for receiver, answer in answers:
        if isinstance(answer, Exception):
            logger.error("A signal receiver failed: %r", receiver, exc_info=answer)
