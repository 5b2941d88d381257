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
from collections.abc import Callable, Sequence
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
from jobqueue.engine.environment import Environment
from jobqueue.engine.hygiene import clean_connections
from jobqueue.engine.outcomes import Ended, decide_unrunnable
from jobqueue.events import emit
from jobqueue.states import FINISHED, Outcome, State
from jobqueue.storage import Storage
from jobqueue.storage.connections import discard, is_away
from jobqueue.storage.records import Claim

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


def flush(storage: Storage, ended: Sequence[Ended], environment: Environment) -> None:
    """Write the ends of executions in batches; then tell signals and events.

    Raise the error if the database is away (`is_away`): nothing is forgotten, call again with the
    same `ended`. A success that the database refuses is split from its batch and
    recorded as a failure; an end that it refuses in any form is logged, and left to the reaper.
    What no longer matches is reported as a lost lease.
    """
    to_tell = {_fenced(e): e for e in ended}
    successes = [e for e in ended if e.result is not None]
    failures = [e for e in ended if e.failure is not None]
    missing: set[Fenced] = set()

    def end_as_failure(one: Ended, error: DatabaseError) -> None:
        failure = decide_unrunnable(one.claim, error, environment.options)
        failures.append(Ended(one.claim, one.started, one.ended, failure=failure))
        to_tell[_fenced(one)] = failures[-1]

    def leave_to_reaper(one: Ended, error: DatabaseError) -> None:
        logger.error("The end of job %s cannot be stored: %s", one.claim.id, error)
        del to_tell[_fenced(one)]

    if successes:
        worker = successes[0].claim.worker
        missing |= _in_halves(
            successes,
            lambda part: storage.finish_many(worker, [e.as_success() for e in part]),
            end_as_failure,
        )
    if failures:
        missing |= _in_halves(
            failures,
            lambda part: storage.end_many([e.as_ending() for e in part]),
            leave_to_reaper,
        )
    _announce([e for e in to_tell.values() if not _is_lost(storage, e, missing)])
    if environment.test_connection is None:
        clean_connections()  # receivers ran in this thread, which runs no jobs that would do it


def _in_halves(
    part: Sequence[Ended],
    write: Callable[[Sequence[Ended]], list[Fenced]],
    refuse: Callable[[Ended, DatabaseError], None],
) -> set[Fenced]:
    """Write `part`, in halves where the database refuses it, until a bad row stands alone."""
    try:
        return set(write(part))
    except DatabaseError as error:
        if is_away(error):
            raise
        if len(part) == 1:
            refuse(part[0], error)
            return set()
    middle = len(part) // 2
    return _in_halves(part[:middle], write, refuse) | _in_halves(part[middle:], write, refuse)


def _fenced(ended: Ended) -> Fenced:
    return ended.claim.id, ended.claim.fence


def _is_lost(storage: Storage, ended: Ended, missing: set[Fenced]) -> bool:
    """Return whether the end of this execution was refused, or lost before it was written."""
    claim = ended.claim
    if ended.committed:
        return False
    if ended.result is None and ended.failure is None:
        emit("job.lease_lost", level=logging.WARNING, job=claim.id, fence=claim.fence)
        return True
    if _fenced(ended) not in missing:
        return False
    expected = Outcome.SUCCEEDED if ended.failure is None else ended.failure.outcome
    if storage.verdict(claim).outcome == expected:
        return False  # an earlier try of this batch was committed, only its answer was lost
    emit("job.lease_lost", level=logging.WARNING, job=claim.id, fence=claim.fence)
    return True


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


def announce_death(job_id: object, task: str, reason: str) -> None:
    """Send `jobqueue.signals.job_died`; never raise."""
    try:
        answers = signals.job_died.send_robust(sender=None, job_id=job_id, task=task, reason=reason)
    except BaseException:
        logger.exception("A receiver of job_died raised to the end of its thread; it goes on")
        return
    _log_errors(answers)


def announce_finished(backend_alias: str, job_id: object) -> None:
    """Send Django's ``task_finished`` for a job that has ended; never raise."""
    _send_result(task_finished, backend_alias, job_id)


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
