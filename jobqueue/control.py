"""What operators may do, and who did it: the one module behind admin, API, page and shell.

    from jobqueue import control

    outcome = control.requeue([job_id], control.Actor("kim", "admin"))
    str(outcome)                # "1 requeued", or "1 skipped: running"

Each function changes rows by compare-and-set, waits for no row lock, and writes one Action row
in the same transaction (none if nothing changed; above 1,000 jobs one for each 1,000). It raises
only for what it was given; what became of each job is in the `Outcome`: "locked", "not found" or
"skipped: STATE" beside what was done. `require_change` turns that into an exception where one
job is meant. The state machine decides what is allowed: a job that succeeded is never run again.

What it does not promise: that a running job's code stops at a forced cancel. Its worker is
refused from then on, so an atomic job's writes roll back; effects outside the database may go on
until it notices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import batched
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS, signal_is_heard, task_finished
from jobqueue.engine.completion import announce_finished
from jobqueue.engine.operations import (
    LOCK_PAUSE_SECONDS,
    LOCK_TRIES,
    MAX_ROWS,
    Actor,
    Desk,
    Outcome,
    parse_ids,
)
from jobqueue.engine.pruning import prune
from jobqueue.engine.queues import pause, resume
from jobqueue.engine.status import Status, status
from jobqueue.events import emit
from jobqueue.exceptions import JobNotFound, RowLocked, WrongState
from jobqueue.models import Job
from jobqueue.states import WAITING, State, allowed_verbs
from jobqueue.storage import Storage

__all__ = [
    "Actor",
    "Outcome",
    "Status",
    "cancel",
    "discard",
    "pause",
    "prune",
    "requeue",
    "require_change",
    "resume",
    "status",
]

Ids = Iterable[UUID | str]
Change = Callable[[Storage, Sequence[UUID]], Collection[UUID]]


def requeue(ids: Ids, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> Outcome:
    """Give dead or cancelled jobs a new budget of attempts and make them ready; hint at them."""
    desk = Desk(actor, backend)

    def change(storage: Storage, chosen: Sequence[UUID]) -> Collection[UUID]:
        return storage.requeue_many(chosen, desk.options.aging_seconds)

    return _change_jobs(
        desk, "requeue", "requeued", ids, change, {State.DEAD, State.CANCELLED}, then=_send_hints
    )


def cancel(
    ids: Ids,
    actor: Actor,
    force: bool = False,
    *,
    reason: str = "",
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> Outcome:
    """End waiting jobs as cancelled; with `force` also running ones.

    A forced cancel ends the run and raises the fence, so that its worker is refused. A running
    job whose row is locked (it is about to finish, or writes in a guarded block) is "locked".
    """
    desk = Desk(actor, backend)
    reason = reason or f"cancelled by {actor.name}"

    def change(storage: Storage, chosen: Sequence[UUID]) -> Collection[UUID]:
        done = set(storage.cancel_waiting(chosen, reason))
        if force:
            done |= _force(desk, storage, [i for i in chosen if i not in done], reason)
        return done

    sources = WAITING | {State.RUNNING} if force else WAITING
    return _change_jobs(
        desk, "cancel", "cancelled", ids, change, sources, then=_announce, reason=reason
    )


def discard(
    ids: Ids,
    actor: Actor,
    *,
    reason: str = "",
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> Outcome:
    """Give dead letters up for good: dead becomes cancelled, and is pruned as such."""
    reason = reason or f"discarded by {actor.name}"

    def change(storage: Storage, chosen: Sequence[UUID]) -> Collection[UUID]:
        return storage.discard_dead(chosen, reason)

    desk = Desk(actor, backend)
    return _change_jobs(
        desk, "discard", "discarded", ids, change, {State.DEAD}, then=None, reason=reason
    )


def require_change(outcome: Outcome) -> Outcome:
    """Return `outcome` if it changed anything, else raise why the first of its jobs was not.

    Raise JobNotFound, RowLocked, or WrongState with the state and what is allowed there.
    """
    if outcome.changed or not outcome.results:
        return outcome
    job_id, what = next(iter(outcome.results.items()))
    if what == "not found":
        raise JobNotFound(f"There is no job {job_id}.")
    if what == "locked":
        raise RowLocked(
            f"Job {job_id} is locked by a transaction that has not ended; try again in a moment."
        )
    state = State(what.removeprefix("skipped: "))
    raise WrongState(
        f"Job {job_id} is {state}, so it cannot be {outcome.done}. {_way_out(state, outcome.done)}",
        current_state=state,
        allowed_actions=tuple(v for v in allowed_verbs(state) if v in ACTIONS),
    )


ACTIONS = frozenset({"requeue", "cancel", "discard", "reschedule"})
"""The verbs of the state machine that operators have."""


def _way_out(state: State, done: str) -> str:
    if state == State.SUCCEEDED:
        return "A job that succeeded is never run again; run again makes a new job."
    if state == State.RUNNING and done == "cancelled":
        return "Force the cancel to end its run."
    if state == State.DEAD and done == "cancelled":
        return "Discard it instead."
    return "Nothing was changed."


# --- one change of many jobs ----------------------------------------------------------------------


def _change_jobs(
    desk: Desk,
    verb: str,
    done: str,
    ids: Ids,
    change: Change,
    sources: Collection[State],
    *,
    then: Callable[[Desk, Sequence[UUID]], None] | None,
    reason: str = "",
) -> Outcome:
    """Change the jobs in transactions of at most `MAX_ROWS`, each with its Action row.

    change: moves those of the given ids that it can and returns them. sources: the states it
    moves from; a row still in one of them was locked. then: is called in the transaction.
    """
    wanted = parse_ids(ids)
    total = Outcome(done)

    def run(storage: Storage, chosen: Sequence[UUID]) -> Outcome:
        outcome = Outcome(done, _try(storage, desk, done, chosen, change, sources))
        changed = [job_id for job_id, what in outcome.results.items() if what == done]
        if changed:
            _record(desk, verb, outcome, changed, single=len(wanted) == 1, reason=reason)
            if then is not None:
                then(desk, changed)
        return outcome

    for chosen in batched(wanted, MAX_ROWS):
        total += desk.transact(partial(run, chosen=chosen))
    return total


def _try(
    storage: Storage,
    desk: Desk,
    done: str,
    chosen: Sequence[UUID],
    change: Change,
    sources: Collection[State],
) -> dict[UUID, str]:
    """Return what happened to each id; rows that are locked are tried a few times."""
    results: dict[UUID, str] = {}
    left = list(chosen)
    for tried in range(LOCK_TRIES):
        if tried:
            time.sleep(LOCK_PAUSE_SECONDS)
        results.update(dict.fromkeys(change(storage, left), done))
        left = [job_id for job_id in left if job_id not in results]
        if not left:
            break
        states = dict(_jobs(desk, left).values_list("id", "state"))
        moved = {i: _why_not(states.get(i)) for i in left if states.get(i) not in sources}
        results.update(moved)
        left = [job_id for job_id in left if job_id not in moved]
        if not left:
            break
    results.update(dict.fromkeys(left, "locked"))
    return {job_id: results[job_id] for job_id in chosen}


def _force(desk: Desk, storage: Storage, ids: Sequence[UUID], reason: str) -> set[UUID]:
    """End the runs of those of `ids` that are running and not locked; return which."""
    running = _jobs(desk, ids).filter(state=State.RUNNING).order_by("id")
    done: set[UUID] = set()
    for job_id, fence in list(running.values_list("id", "fence")):
        try:
            with transaction.atomic(using=desk.database):  # a refused lock ends a savepoint only
                if storage.force_cancel(job_id, fence, reason):
                    done.add(job_id)
        except RowLocked:
            continue
    return done


def _jobs(desk: Desk, ids: Sequence[UUID]) -> QuerySet[Job]:
    return Job.objects.using(desk.database).filter(id__in=ids)


def _why_not(state: str | None) -> str:
    return "not found" if state is None else f"skipped: {state}"


def _record(
    desk: Desk, verb: str, outcome: Outcome, changed: Sequence[UUID], *, single: bool, reason: str
) -> None:
    detail: dict[str, object] = {"backend": desk.backend, "counts": outcome.counts}
    if reason:
        detail["reason"] = reason
    if not single:
        detail["ids"] = [str(job_id) for job_id in changed]
    desk.record(
        verb,
        len(changed),
        target=str(changed[0]) if single else f"{len(changed)} jobs",
        job_id=changed[0] if single else None,
        detail=detail,
    )
    actor, count = desk.actor, len(changed)
    desk.after_commit(
        lambda: emit(f"jobs.{outcome.done}", count=count, actor=actor.name, surface=actor.surface)
    )


# --- what follows after the commit ----------------------------------------------------------------


def _send_hints(desk: Desk, changed: Sequence[UUID]) -> None:
    desk.hint(set(_jobs(desk, changed).values_list("queue", flat=True)))


def _announce(desk: Desk, changed: Sequence[UUID]) -> None:
    """Send task_finished for jobs that have now ended, if anybody listens."""
    ended = list(_jobs(desk, changed).values_list("backend", "id"))

    def send() -> None:
        if signal_is_heard(task_finished):
            for alias, job_id in ended:
                announce_finished(alias, job_id)

    desk.after_commit(send)
