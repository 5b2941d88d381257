"""What the storages share: records as the rows their statements read, and the guard's errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError, IntegrityError

from jobqueue.exceptions import LeaseLost
from jobqueue.storage.errors import said, violated_constraint
from jobqueue.storage.records import (
    FRONT,
    Claim,
    CodedLimit,
    Ending,
    NewJob,
    NewWorker,
    Place,
)

_ONE_OWNER = frozenset(
    {
        "jobqueue_attempt_job_fence",
        "jobqueue_attempt_job_number",
        "jobqueue_attempt_one_success",
        # SQLite names the columns.
        "UNIQUE constraint failed: jobqueue_attempt.job_id, jobqueue_attempt.fence",
        "UNIQUE constraint failed: jobqueue_attempt.job_id, jobqueue_attempt.number",
        "UNIQUE constraint failed: jobqueue_attempt.job_id",
    }
)
"""Constraints that an attempt breaks which is not the owner's."""
LEASE_LOST_MARK = "jobqueue_lease_lost"
"""What a statement says when its guard fails on the server."""


def new_job_row(n: int, job: NewJob) -> dict[str, Any]:
    """Return a new job as the JSON object that the insert reads; `n` keeps the order.

    What few jobs have is left out of the others: it would only make their text longer.
    """
    row = {
        "n": n,
        "id": job.id.hex,
        "backend": job.backend,
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "arguments": job.arguments,
        "timeout": job.timeout,
        "run_at": None if job.run_at is None else job.run_at.isoformat(),
        "delay": job.delay,
        "max_attempts": job.max_attempts,
        "on_crash": job.on_crash,
        "expires_at": None if job.expires_at is None else job.expires_at.isoformat(),
        "copied_from": None if job.copied_from is None else job.copied_from.hex,
        "created_by": job.created_by,
        "trace_context": job.trace_context,
        "limit_key": job.limit_key,
        "aging": job.aging_seconds,
    }
    if job.expires_in is not None:
        row["expires_in"] = job.expires_in  # left out for the many that never expire
    if job.unique_key is not None:
        row["unique_key"], row["unique_until"] = job.unique_key, job.unique_until
        row["unique_window"] = job.unique_window
    if job.schedule:
        row["schedule"] = job.schedule
        row["tick"] = None if job.tick is None else job.tick.isoformat()
        row["blocked"] = job.blocked
    return row


def ending_row(ending: Ending) -> dict[str, Any]:
    """Return an ending as the JSON object that ``end_attempts.sql`` reads."""
    error = ending.error
    return {
        "id": ending.id.hex,
        "fence": ending.fence,
        "worker": ending.worker.hex,
        "state": ending.state,
        "outcome": ending.outcome,
        "charged": ending.charged,
        "delay": ending.delay,
        "started_ago": ending.started_ago,
        "error_class": error.class_path if error else None,
        "error_message": error.message if error else None,
        "error_fingerprint": error.fingerprint if error else None,
        "traceback": error.traceback if error else None,
        "reason": ending.reason[:64],
        "suspicion": ending.suspicion,
        "alone": ending.alone,
        "aging": ending.aging_seconds,
    }


def coded_limit_row(limit: CodedLimit) -> dict[str, Any]:
    """Return what the code says of a limit as the row that ``seed_limits.sql`` reads."""
    return {
        "key": limit.key,
        "running": limit.running,
        "rate": limit.rate,
        "per": limit.per,
        "source": limit.source,
    }


def worker_row(worker: NewWorker) -> dict[str, Any]:
    """Return a new worker as the parameters of ``register_worker.sql``."""
    return {
        "id": worker.id,
        "kind": worker.kind,
        "name": worker.name[:255],
        "host": worker.host[:255],
        "pid": worker.pid,
        "supervisor": worker.supervisor,
        "backend": worker.backend,
        "version": worker.version[:64],
        "queues": json.dumps(worker.queues),
        "tasks": json.dumps(worker.tasks),
        "slots": worker.slots,
        "direct": worker.direct,
        "lease": worker.lease_seconds,
    }


@contextmanager
def lease_errors(claim: Claim) -> Iterator[None]:
    """Turn the errors by which a guard fails in the database into LeaseLost.

    A duplicate (job, fence) or a second success means the same: this run is not the job's owner.
    """
    try:
        yield
    except IntegrityError as error:
        if violated_constraint(error) in _ONE_OWNER:
            message = f"Another run of job {claim.id} has ended it."
            raise LeaseLost(message, run=(claim.id, claim.fence)) from error
        raise
    except DatabaseError as error:
        if LEASE_LOST_MARK in said(error):
            raise lease_lost(claim) from error
        raise


def lease_lost(claim: Claim) -> LeaseLost:
    """Return the error of a guard that did not match."""
    return LeaseLost(
        f"Job {claim.id} no longer belongs to worker {claim.worker} at fence {claim.fence}.",
        run=(claim.id, claim.fence),
    )


def by_urgency(claims: list[Claim], queues: Sequence[str] | None = None) -> list[Claim]:
    """Sort `claims` in place, the most urgent first, and return them: RETURNING has no order.

    queues: given where their order goes before rank.
    """
    if queues is None:
        claims.sort(key=_urgency)
    else:
        turn = {queue: number for number, queue in enumerate(queues)}
        claims.sort(key=lambda claim: (turn[claim.queue], *_urgency(claim)))
    return claims


def _urgency(claim: Claim) -> tuple[int, int]:
    return claim.rank, claim.id.int  # ids of one enqueue_many share a rank: not compared in Python


def places(queues: Sequence[str], behind: Sequence[Place] | None) -> dict[str, Any]:
    """Return the parameters that say behind which place each queue's window begins."""
    found = [FRONT] * len(queues) if behind is None else behind
    return {"ranks": [place.rank for place in found], "behind": [place.id for place in found]}


def turn_of_queues(strict: bool) -> str:
    """Return the fragment of a claim that lets the order of the queues go before rank, or not."""
    return "q.turn" if strict else "0"
