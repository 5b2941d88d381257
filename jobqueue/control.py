"""What operators may do, and who did it: the one module behind admin, API, page and shell.

    from jobqueue import control

    outcome = control.requeue([job_id], control.Actor("kim", "admin"))
    str(outcome)                # "1 requeued", or "1 skipped: running"

Each function changes rows by compare-and-set, waits for no row lock, and writes one Action row
in the same transaction (none if nothing changed; above 1,000 jobs one for each 1,000). It raises
only for what it was given; what became of each job is in the `Outcome`: "locked", "not found",
"refused" or "skipped: STATE" beside what was done. `require_change` turns that into an exception
where one job is meant. The state machine decides what is allowed: a job that succeeded is never
run again, and a running one is only ever cancelled.

What a filter matches is listed by `job_page`, and changed by a bulk operation (`bulk_start`), which
goes on in the background, may be stopped and resumed, and obeys the same rules job by job.

What it does not promise: that a running job's code stops at once. A request is only a request;
after a forced cancel its worker is refused, so an atomic job's writes roll back, but effects
outside the database may go on until it notices.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.engine import statistics, verbs
from jobqueue.engine.bulk import Preview
from jobqueue.engine.bulk import find as bulk_operation
from jobqueue.engine.bulk import preview as bulk_preview
from jobqueue.engine.bulk import recent as bulk_operations
from jobqueue.engine.bulk import resume as bulk_resume
from jobqueue.engine.bulk import start as bulk_start
from jobqueue.engine.bulk import stop as bulk_stop
from jobqueue.engine.bulk_steps import run_step as bulk_step
from jobqueue.engine.changes import LOCKED, NOT_FOUND, REFUSED, Ids, change_jobs
from jobqueue.engine.draining import drain_worker
from jobqueue.engine.editing import KEEP, edit_job, edit_queue
from jobqueue.engine.findings import Finding, findings, notices, problems
from jobqueue.engine.idempotency import Given, request_key
from jobqueue.engine.job_pages import JobPage, job_page
from jobqueue.engine.limit_rows import LimitStatus, lift_limit, limits, reset_limit, set_limit
from jobqueue.engine.making import (
    HAS_TWIN,
    NOT_OFFERED,
    UNREADABLE,
    Copied,
    enqueue,
    exposed_tasks,
    run_again,
)
from jobqueue.engine.operations import Actor, Desk, Outcome
from jobqueue.engine.pruning import prune
from jobqueue.engine.queues import has_live_jobs, known_queues, pause, resume
from jobqueue.engine.readiness import Readiness, readiness
from jobqueue.engine.schedule_rows import check_schedule
from jobqueue.engine.schedule_status import schedules
from jobqueue.engine.schedules import (
    create_schedule,
    delete_schedule,
    disable_schedule,
    enable_schedule,
    preview_schedule,
    run_schedule,
    run_schedule_once,
    update_schedule,
)
from jobqueue.engine.signatures import schema_of
from jobqueue.engine.status import QueueStatus, Status, status
from jobqueue.engine.status import queue_statuses as queues
from jobqueue.engine.status import worker_statuses as workers
from jobqueue.engine.submission import MAX_SUBMISSIONS, Submission, submit
from jobqueue.engine.verbs import ACTIONS, allowed_actions
from jobqueue.exceptions import InvalidArgument, JobNotFound, RowLocked, TaskNotExposed, WrongState
from jobqueue.states import State
from jobqueue.storage.moving import SUPERSEDED
from jobqueue.storage.records import RequestKey, StoredAnswer

__all__ = [
    "ACTIONS",
    "KEEP",
    "MAX_SUBMISSIONS",
    "Actor",
    "Copied",
    "Finding",
    "Given",
    "JobPage",
    "LimitStatus",
    "Outcome",
    "Preview",
    "QueueStatus",
    "Readiness",
    "RequestKey",
    "Status",
    "StoredAnswer",
    "Submission",
    "allowed_actions",
    "bulk_operation",
    "bulk_operations",
    "bulk_preview",
    "bulk_resume",
    "bulk_start",
    "bulk_step",
    "bulk_stop",
    "cancel",
    "check_schedule",
    "create_schedule",
    "delete_schedule",
    "disable_schedule",
    "discard",
    "drain_worker",
    "edit_job",
    "edit_queue",
    "enable_schedule",
    "enqueue",
    "exposed_tasks",
    "findings",
    "has_live_jobs",
    "job_page",
    "known_queues",
    "lift_limit",
    "limits",
    "move",
    "notices",
    "pause",
    "preview_schedule",
    "problems",
    "prune",
    "queues",
    "readiness",
    "reprioritize",
    "request_key",
    "requeue",
    "require_change",
    "reschedule",
    "reset_limit",
    "resume",
    "run_again",
    "run_now",
    "run_schedule",
    "run_schedule_once",
    "schedules",
    "schema_of",
    "set_limit",
    "statistics",
    "status",
    "submit",
    "update_schedule",
    "workers",
]


def requeue(ids: Ids, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> Outcome:
    """Give dead or cancelled jobs a new budget of attempts and make them ready; hint at them."""
    desk = Desk(actor, backend)
    return change_jobs(desk, verbs.requeue(desk), ids)


def cancel(
    ids: Ids,
    actor: Actor,
    force: bool = False,
    *,
    reason: str = "",
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> Outcome:
    """End waiting jobs as cancelled; running ones are "asked" to stop, or ended with `force`.

    The worker of a job that was asked sees it within one heartbeat: ``context.is_cancelled`` turns
    true, a coroutine is cancelled. Whatever its attempt comes to, the job does not run again; if
    it succeeds, it has succeeded.

    A forced cancel ends the run and raises the fence, so that its worker is refused and stops the
    code as for a time-out. A running job whose row is locked (it is about to finish, or writes in
    a guarded block) is "locked".
    """
    desk = Desk(actor, backend)
    return change_jobs(desk, verbs.cancel(desk, reason, force), ids)


def discard(
    ids: Ids, actor: Actor, *, reason: str = "", backend: str = DEFAULT_TASK_BACKEND_ALIAS
) -> Outcome:
    """Give dead letters up for good: dead becomes cancelled, and is pruned as such."""
    desk = Desk(actor, backend)
    return change_jobs(desk, verbs.discard(desk, reason), ids)


def reschedule(
    ids: Ids,
    run_at: datetime | timedelta,
    actor: Actor,
    *,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> Outcome:
    """Make waiting jobs due at `run_at`; a time that has passed means now.

    A blocked job that is due later is scheduled until then, and blocked again if it must be.
    """
    desk = Desk(actor, backend)
    return change_jobs(desk, verbs.reschedule(desk, run_at), ids)


def run_now(ids: Ids, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> Outcome:
    """Make waiting jobs due now. A blocked one stays blocked; one that is ready keeps its place."""
    desk = Desk(actor, backend)
    return change_jobs(desk, verbs.run_now(desk), ids)


def reprioritize(
    ids: Ids, priority: int, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS
) -> Outcome:
    """Give waiting jobs another priority; how long they have waited still counts."""
    desk = Desk(actor, backend)
    return change_jobs(desk, verbs.reprioritize(desk, priority), ids)


def move(
    ids: Ids, queue: str, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS
) -> Outcome:
    """Put waiting jobs into another queue, which must be in QUEUES of the alias if that is set."""
    desk = Desk(actor, backend)
    return change_jobs(desk, verbs.move(desk, queue), ids)


def require_change(outcome: Outcome) -> Outcome:
    """Return `outcome` if it changed anything, else raise why the first of its jobs was not.

    Raise JobNotFound, RowLocked, or WrongState with the state and what is allowed there.
    """
    if outcome.changed or not outcome.results:
        return outcome
    job_id, what = next(iter(outcome.results.items()))
    if what == NOT_FOUND:
        raise JobNotFound(f"There is no job {job_id}.")
    if what == LOCKED:
        raise RowLocked(
            f"Job {job_id} is locked by a transaction that has not ended; try again in a moment."
        )
    if what == REFUSED:
        raise InvalidArgument(
            f"A constraint of the database refuses job {job_id} to be {outcome.done}: does another "
            "live job hold its unique key? Nothing was changed."
        )
    if what == NOT_OFFERED:
        raise TaskNotExposed(f"The task of job {job_id} is not offered here, so it cannot be run.")
    if what == HAS_TWIN:
        raise InvalidArgument(f"Another job holds the unique key of job {job_id}; cancel that one.")
    if what == SUPERSEDED:
        raise WrongState(
            f"Job {job_id} was superseded: another job of its unique key waits or runs.",
            current_state=State.CANCELLED,
            allowed_actions=allowed_actions(State.CANCELLED),
        )
    if what == UNREADABLE:
        raise InvalidArgument(f"The stored arguments of job {job_id} cannot be read.")
    state = State(what.removeprefix("skipped: "))
    raise WrongState(
        f"Job {job_id} is {state}, so it cannot be {outcome.done}. {_way_out(state, outcome.done)}",
        current_state=state,
        allowed_actions=allowed_actions(state),
    )


def _way_out(state: State, done: str) -> str:
    if state == State.SUCCEEDED:
        return "A job that succeeded is never run again; run again makes a new job."
    if state == State.DEAD and done == "cancelled":
        return "Discard it instead."
    return "Nothing was changed."
