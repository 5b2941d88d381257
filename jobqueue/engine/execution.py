"""Running one claimed job: atomic (the default for ``def``), not atomic, or ``async def``.

How an atomic task runs, and what a process leaves behind that dies in one: `atomic_run`. What one
leaves behind that dies in another task: a running row, taken back as lost, and whatever it did.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from jobqueue.compat import signal_is_heard, task_started
from jobqueue.conf import Options, job_options
from jobqueue.engine.announcements import announce_started
from jobqueue.engine.atomic_run import run_atomic
from jobqueue.engine.hygiene import clean_connections, drop_gone
from jobqueue.engine.job_block import kept_connection, leave_kept_block
from jobqueue.engine.outcomes import Ended, decide_failure
from jobqueue.engine.runs import Run, ended_with, in_test, success
from jobqueue.storage.records import Claim

logger = logging.getLogger("jobqueue")


def broken(claim: Claim, error: BaseException) -> Ended:
    """Return the end of a claim that our own code failed to run: a failure like any other.

    Never raises, whatever `error` is: it keeps a slot alive, and its job from staying held.
    """
    with suppress(BaseException):
        logger.error("The run of job %s broke", claim.id, exc_info=error)
    now = time.monotonic()
    failure = decide_failure(claim, error, None, job_options(claim.backend, Options()))
    return Ended(claim, now, now, failure=failure)


def run_sync(run: Run, *, has_next: bool = False) -> Ended:
    """Run a ``def`` task in this thread; never raises. The thread's connections come back clean.

    has_next: the thread will run another at once, for which an untouched block may stay open.
    """
    if not run.task.atomic or signal_is_heard(task_started):
        leave_kept_block()
    heard = announce_started(run.claim)  # before the transaction: receivers are no part of the job
    if not in_test(run.environment):
        clean_connections() if heard else drop_gone()
    try:
        if run.task.atomic:
            return run_atomic(run, connections[run.environment.options.database], has_next)
        return _run_plain(run, run.call)
    except BaseException as error:  # what decides about an error of the job's met another
        return broken(run.claim, error)
    finally:
        if not in_test(run.environment):
            clean_connections(kept_connection())


async def run_async(run: Run) -> Ended:
    """Await an ``async def`` task; never raises, also not SystemExit or KeyboardInterrupt, which
    would end the event loop.
    """
    started = run.state.started
    try:
        if signal_is_heard(task_started):
            await sync_to_async(announce_started)(run.claim)
        value = await run.call_async()
        return success(run, value)
    except BaseException as error:
        try:
            return ended_with(run, error, started)
        except BaseException as worse:
            return broken(run.claim, worse)


# --- not atomic ----------------------------------------


def _run_plain(run: Run, call: Callable[[], Any]) -> Ended:
    try:
        return success(run, call())
    except BaseException as error:
        return ended_with(run, error, run.state.started)
