"""Running an atomic task: its writes and the job's completion are one transaction.

``atomic()`` → our own first on_commit callback → the function → the finish with guard, result and
attempt row → COMMIT. The planted flag is the only proof of success.

What a process leaves behind that dies or freezes …
- anywhere before COMMIT: nothing; the server rolls back when the session ends. A frozen process's
  session is ended by whoever declares it dead; between finish and COMMIT the server ends it
  itself (idle time-out), so that the row does not stay locked.
- after COMMIT: a succeeded job with its effects, and no on_commit callbacks.
A thawed process meets the guard: its finish raises on the server and its writes roll back.

An atomic task that ran no statement has no effects to bind: its finish goes with the next batch,
and its block may serve the thread's next job (`job_block`).
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass, replace
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.conf import LONG_TRANSACTION_SECONDS, MAX_RERUNS, RERUN_SECONDS
from jobqueue.engine.commit_fate import resolve_unknown_commit
from jobqueue.engine.environment import Environment
from jobqueue.engine.hygiene import open_transactions
from jobqueue.engine.job_block import JobBlock, leave_kept_block
from jobqueue.engine.outcomes import Ended, put_off
from jobqueue.engine.proof import (
    CommitProof,
    Witness,
    asks_to_run_again,
    backend_pid,
    is_connection_lost,
)
from jobqueue.engine.runs import LEFT_OPEN, Run, encoded, ended_with, has_lost, in_test
from jobqueue.events import emit
from jobqueue.exceptions import JobQueueError, TransactionLeftOpen
from jobqueue.payload import decode_arguments
from jobqueue.storage import storage_for
from jobqueue.storage.busy import is_busy
from jobqueue.storage.connections import discard

logger = logging.getLogger("jobqueue")


@dataclass(slots=True)
class _Trial:
    """One pass through an atomic task: how far it came, and what stopped it."""

    proof: CommitProof
    phase: str = "begin"  # run, finish, commit
    session: Any = None
    pid: int | None = None
    result: str | None = None
    deferred: bool = False
    error: BaseException | None = None


def run_atomic(run: Run, connection: BaseDatabaseWrapper, has_next: bool) -> Ended:
    """Run an atomic task; again at once, uncharged, where the database asks for it."""
    for rerun in range(MAX_RERUNS + 1):
        trial = _try_once(run, connection, has_next)
        verdict = _judge(run, trial, connection, rerun)
        if verdict is not None:
            return verdict
        # Those that met each other once meet again if both come back at once.
        time.sleep(random.uniform(0.0, RERUN_SECONDS * 2**rerun))
        emit("job.rerun", job=run.claim.id, fence=run.claim.fence, error=repr(trial.error)[:200])
        args, kwargs = decode_arguments(run.claim.arguments)  # the last pass may have changed them
        run = replace(run, args=args, kwargs=kwargs)
    raise AssertionError("unreachable: the last rerun is always judged")


def _try_once(run: Run, connection: BaseDatabaseWrapper, has_next: bool) -> _Trial:
    trial = _Trial(CommitProof())
    witness = Witness()
    block = JobBlock(connection, trial.proof, witness)
    try:
        with block:
            trial.phase = "run"
            depth = len(connection.savepoint_ids)
            trial.session, trial.pid = connection.connection, backend_pid(connection)
            value = run.call()
            _refuse_open_blocks(connection, depth, run.environment)
            trial.result = encoded(run, value)
            trial.phase = "finish"
            trial.deferred = _is_untouched(connection)
            if trial.deferred:
                is_over = True  # there is nothing to commit
            else:
                storage = storage_for(connection, run.environment.options)
                is_over = storage.finish_and_commit(run.claim, trial.result, run.state.age_seconds)
            trial.phase = "commit"
            if is_over and has_next and block.is_clean:
                block.keep()
        if block.is_nested:
            trial.proof.plant()  # the released savepoint is the proof
    except BaseException as error:
        has_ended = trial.phase in ("finish", "commit")
        trial.error = witness.cause_of(error) if has_ended else error
    _warn_if_long(run)
    return trial


def _judge(run: Run, trial: _Trial, connection: BaseDatabaseWrapper, rerun: int) -> Ended | None:
    """Return how the trial ended, None if the job is to be run again at once."""
    claim, started, now = run.claim, run.state.started, time.monotonic()
    error = trial.error
    if trial.proof.planted:
        if error is not None:
            logger.error("An on_commit callback of job %s failed", claim.id, exc_info=error)
        if trial.deferred:
            return Ended(claim, started, now, result=trial.result)
        return Ended(claim, started, now, committed=True)
    if has_lost(run, error):
        return _after_lease_lost(run, rerun)
    if run.state.stopped is not None:  # before the finish began; its sessions were closed for it
        return ended_with(run, error or _rolled_back(), started)
    last = rerun >= MAX_RERUNS
    if error is not None and is_connection_lost(error, connection.vendor, trial.session):
        verdict = resolve_unknown_commit(run.environment, claim, trial.pid)
        discard(connection)
        if verdict == "committed":
            return Ended(claim, started, now, committed=True)
        if verdict == "lease lost":
            return Ended(claim, started, now)
        return ended_with(run, error, started) if last else None
    if error is not None and trial.phase == "begin" and is_busy(error):
        # SQLite: each try has waited for the write lock as long as the connection may.
        return (
            Ended(claim, started, now, failure=put_off(error, run.state.options)) if last else None
        )
    if error is not None and trial.phase != "run" and asks_to_run_again(error):
        return ended_with(run, error, started) if last else None
    if connection.in_atomic_block and not in_test(run.environment):
        discard(connection)  # a block that the job entered by hand and never left
    return ended_with(run, error or _rolled_back(), started)


def _after_lease_lost(run: Run, rerun: int) -> Ended:
    """Where an old session could not be ended, its COMMIT may have won against our re-run."""
    if rerun and not run.environment.direct:
        verdict = resolve_unknown_commit(run.environment, run.claim, None)
        if verdict == "committed":
            return Ended(run.claim, run.state.started, time.monotonic(), committed=True)
    return Ended(run.claim, run.state.started, time.monotonic())


def _refuse_open_blocks(
    connection: BaseDatabaseWrapper, depth: int, environment: Environment
) -> None:
    if len(connection.savepoint_ids) != depth or not connection.in_atomic_block:
        raise TransactionLeftOpen(LEFT_OPEN)
    if not in_test(environment) and open_transactions() != [connection]:
        raise TransactionLeftOpen(LEFT_OPEN)


def _rolled_back() -> BaseException:
    return JobQueueError(
        "The job's transaction was rolled back without an exception (set_rollback?), so nothing "
        "of it was committed."
    )


def _is_untouched(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the open transaction has sent no statement and holds no foreign callback.

    psycopg sends BEGIN with the first statement: an idle session has done nothing since.
    """
    info = getattr(connection.connection, "info", None)
    if info is None or connection.needs_rollback or len(connection.run_on_commit) != 1:
        return False
    return int(info.transaction_status) == 0


def _warn_if_long(run: Run) -> None:
    seconds = run.state.age_seconds
    if seconds >= LONG_TRANSACTION_SECONDS:
        leave_kept_block()  # what a subscriber writes is no part of the next job
        emit(
            "job.long_transaction",
            level=logging.WARNING,
            job=run.claim.id,
            task=run.claim.task,
            seconds=round(seconds, 1),
            way_out="atomic=False and context.commit()",
        )
