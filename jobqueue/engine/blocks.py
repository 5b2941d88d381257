"""``with context.atomic():`` — a transaction fenced by the job's row, and ``context.commit``.

What a process leaves behind that dies …
- before the block's COMMIT: nothing; the server rolls back, the job is reaped.
- after COMMIT of a block without commit(): its writes, and a running job that is reaped and run
  again: at-least-once, as for any code outside one transaction.
- after COMMIT of a block with commit(): a succeeded job.
A connection lost around COMMIT is resolved by the attempt row (`jobqueue.engine.commit_fate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.db import connections, transaction

from jobqueue.engine.commit_fate import resolve_unknown_commit
from jobqueue.engine.interrupts import uninterrupted
from jobqueue.engine.proof import CommitProof, backend_pid, is_connection_lost
from jobqueue.engine.run_state import RunState
from jobqueue.exceptions import StepError
from jobqueue.storage import storage_for


@contextmanager
def guarded_block(run: RunState) -> Iterator[None]:
    """Open the block; see the module docstring.

    Raise LeaseLost, or StepError when nested or in a process that the job forked.
    """
    run.environment.refuse_copy()
    if run.committed:
        raise StepError("The job has been committed; nothing can be added to it.")
    if run.in_block:
        raise StepError("context.atomic() blocks do not nest; use transaction.atomic() inside.")
    environment = run.environment
    connection = connections[environment.options.database]
    storage = storage_for(connection, environment.options)
    proof = CommitProof()
    session = pid = None
    is_outermost = not connection.in_atomic_block  # else in an atomic task, or in a TestCase
    # Where the transaction goes on after the block, so would its limit.
    idle_seconds = environment.options.lease_seconds if is_outermost else None
    run.in_block = True
    calm = ExitStack()  # from the end of the body to the end of COMMIT nothing interrupts
    try:
        with transaction.atomic(using=environment.options.database, durable=not run.in_atomic_task):
            if is_outermost:
                transaction.on_commit(proof.plant, using=environment.options.database)
            storage.hold(run.claim, idle_seconds)
            session, pid = connection.connection, backend_pid(connection)
            try:
                yield
            finally:
                calm.enter_context(uninterrupted(run))
            if run.commit_result is not None:
                storage.finish_one(run.claim, run.commit_result, run.age_seconds)
    except BaseException as error:
        lost = is_connection_lost(error, connection.vendor, session)
        if not _was_committed(run, proof, lost, pid):
            run.commit_result = None
            raise
    finally:
        run.in_block = False
        run.committed = run.commit_result is not None
        calm.close()


def _was_committed(run: RunState, proof: CommitProof, is_lost: bool, pid: int | None) -> bool:
    """Return whether the finish of this block is known to be committed, in spite of an error."""
    if run.commit_result is None:
        return False
    if proof.planted:
        return True  # an on_commit hook of the job raised
    return is_lost and resolve_unknown_commit(run.environment, run.claim, pid) == "committed"
