"""Telling of starts and ends that stand in the database: signals and events; nothing here raises.

Receivers of a job's end are called where that holds nobody up (`jobqueue.engine.delivery`), once
at most: a process that dies after the commit tells of nothing. (`jobqueue.engine.announce` tells
workers of new jobs.)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import InterfaceError, OperationalError, connections
from django.dispatch import Signal

from jobqueue import signals
from jobqueue.compat import signal_is_heard, task_backends, task_finished, task_started
from jobqueue.engine.delivery import deliver
from jobqueue.engine.outcomes import Ended
from jobqueue.events import emit
from jobqueue.states import FINISHED, State
from jobqueue.storage.connections import discard
from jobqueue.storage.moving import SUPERSEDED
from jobqueue.storage.records import Claim, EndedJob

logger = logging.getLogger("jobqueue")


def announce_ended(ended: Sequence[Ended]) -> None:
    """Send signals and events for ends that are committed; never raises."""
    failures = [e for e in ended if e.failure is not None]
    for one in failures:
        announce_failure(one)
    failed = any(not e.is_success and _is_finished(e) for e in failures)
    if signal_is_heard(task_finished, logging.ERROR if failed else logging.INFO):
        for one in ended:
            if _is_finished(one):
                announce_finished(one.claim.backend, one.claim.id)


def _is_finished(one: Ended) -> bool:
    return one.is_success or (one.failure is not None and one.failure.state in FINISHED)


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
