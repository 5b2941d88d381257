"""Several changes of one waiting job, or of one queue, at once: all of them, or none.

    edit_job(job_id, actor, priority=5, queue="mail", version=7)
    edit_queue("mail", actor, paused=True, reason="new server", limit={"running": 5})

The row is locked, looked at, and changed verb by verb (`jobqueue.engine.verbs`) in one transaction;
each change leaves its Action row. `version` makes it conditional: who has read the job before
somebody else changed it is told so, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.engine import verbs
from jobqueue.engine.changes import Change, change_jobs
from jobqueue.engine.limit_rows import lift_limit, set_limit
from jobqueue.engine.operations import Actor, Desk
from jobqueue.engine.queues import pause, resume
from jobqueue.exceptions import InvalidArgument, JobChanged, JobNotFound, RowLocked, WrongState
from jobqueue.limits import QUEUE
from jobqueue.models import Job
from jobqueue.states import WAITING, State
from jobqueue.storage import Storage

KEEP: Final = "keep"
"""Leave the limit of a queue as it is."""


def edit_job(
    job_id: UUID,
    actor: Actor,
    *,
    priority: int | None = None,
    queue: str | None = None,
    run_at: datetime | timedelta | None = None,
    version: int | None = None,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> None:
    """Change what is given of a job that waits.

    version: what the row had when it was read. Raise InvalidArgument, JobNotFound, JobChanged,
    WrongState or RowLocked; nothing was changed then.
    """
    desk = Desk(actor, backend)
    changes = list(_changes(desk, priority, queue, run_at))
    if not changes:
        raise InvalidArgument("Say what to change: priority, queue or time.")

    def run(storage: Storage) -> None:
        _look(desk, job_id, version)
        for change in changes:
            _make(desk, change, job_id)

    desk.transact(run)


def edit_queue(
    queue: str,
    actor: Actor,
    *,
    paused: bool | None = None,
    limit: Mapping[str, Any] | Literal["keep"] | None = KEEP,
    reason: str = "",
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> None:
    """Pause or resume a queue, and set its limit, both or neither.

    limit: the numbers of `set_limit`; None lifts it. Raise InvalidArgument or RowLocked.
    """
    desk = Desk(actor, backend)

    def run(storage: Storage) -> None:
        if paused is not None:
            if paused:
                pause(queue, actor, reason, backend=backend)
            else:
                resume(queue, actor, backend=backend)
        if limit is None:
            lift_limit(f"{QUEUE}:{queue}", actor, reason=reason, backend=backend)
        elif isinstance(limit, Mapping):
            set_limit(f"{QUEUE}:{queue}", actor, reason=reason, backend=backend, **limit)

    desk.transact(run)


def _changes(
    desk: Desk, priority: int | None, queue: str | None, run_at: datetime | timedelta | None
) -> Iterator[Change]:
    """Yield the changes; what cannot be is refused here, before anything is locked."""
    if queue is not None:
        yield verbs.move(desk, queue)
    if priority is not None:
        yield verbs.reprioritize(desk, priority)
    if run_at is not None:
        yield verbs.reschedule(desk, run_at)


def _look(desk: Desk, job_id: UUID, version: int | None) -> None:
    """Lock the row, without waiting; raise unless it may be changed."""
    rows = Job.objects.using(desk.database).filter(id=job_id)
    row = rows.select_for_update(nowait=True, no_key=True).values_list("state", "version").first()
    if row is None:
        raise JobNotFound(f"There is no job {job_id}.")
    state, current = State(row[0]), row[1]
    if version is not None and version != current:
        raise JobChanged(f"Job {job_id} is at version {current}, not {version}: read it again.")
    if state not in WAITING:
        raise WrongState(
            f"Job {job_id} is {state}; only one that waits can be changed.",
            current_state=state,
            allowed_actions=verbs.allowed_actions(state),
        )


def _make(desk: Desk, change: Change, job_id: UUID) -> None:
    """Make one change. Raise RowLocked if it was not made: the row is ours, so it must be."""
    outcome = change_jobs(desk, change, [job_id])
    if not outcome.changed:
        raise RowLocked(f"Job {job_id} could not be changed ({outcome}); try again.")
