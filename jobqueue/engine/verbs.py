"""What operators may do to a job: the verbs, the states each leaves, and how it is done.

Each function makes a `Change`; `jobqueue.control` carries it out for ids that somebody names,
`jobqueue.engine.bulk` for what a filter matches. Both obey the same rules, job by job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction

from jobqueue import hints
from jobqueue.compat import DEFAULT_TASK_QUEUE_NAME, TASK_MAX_PRIORITY, TASK_MIN_PRIORITY
from jobqueue.engine.announcements import announce_superseded
from jobqueue.engine.changes import Change, announce_ends, jobs, send_hints
from jobqueue.engine.definitions import as_moment, check_run_after
from jobqueue.engine.limits import admit
from jobqueue.engine.operations import ASKED, Desk
from jobqueue.engine.queues import check_name
from jobqueue.exceptions import InvalidArgument, RowLocked
from jobqueue.states import FINISHED, WAITING, State
from jobqueue.storage import Storage
from jobqueue.storage.moving import SUPERSEDED

Dues = Mapping[UUID, datetime]

ACTIONS: Mapping[str, frozenset[State]] = {
    "requeue": frozenset({State.DEAD, State.CANCELLED}),
    "cancel": WAITING | {State.RUNNING},
    "discard": frozenset({State.DEAD}),
    "reschedule": WAITING,
    "run_now": WAITING,
    "reprioritize": WAITING,
    "move": WAITING,
    "run_again": FINISHED,
}
"""What may be done to a job, by the names of `jobqueue.control`, and in which states.

A running job is only ever cancelled: it is asked to stop, or its run is ended by force.
"""


def allowed_actions(state: State) -> tuple[str, ...]:
    """Return what may be done to a job in `state`."""
    return tuple(name for name, states in ACTIONS.items() if state in states)


# --- ways out of an end ---------------------------------------------------------------------------


def requeue(desk: Desk, dues: Dues | None = None) -> Change:
    """Give dead or cancelled jobs a new budget; due at once, or at their times in `dues`.

    Of several of one unique key one lives on; the others are superseded.
    """

    def apply(storage: Storage, ids: Sequence[UUID]) -> dict[UUID, str]:
        times = None if dues is None else [dues[job_id] for job_id in ids]
        done = storage.requeue_many(ids, desk.options.aging_seconds, times)
        if done:
            storage.withdraw_requests(done)  # of the life that had ended
        named = set(ids)
        gave_way = [job for job in done.superseded if job.id not in named]
        if gave_way:
            desk.after_commit(partial(announce_superseded, gave_way))
        superseded = [job.id for job in done.superseded if job.id in named]
        return dict.fromkeys(superseded, SUPERSEDED) | dict.fromkeys(done, "requeued")

    return Change(
        verb="requeue",
        done="requeued",
        sources=ACTIONS["requeue"],
        apply=apply,
        follow=send_hints,
    )


def discard(desk: Desk, reason: str = "") -> Change:
    """Lead dead jobs to cancelled."""
    reason = reason or f"discarded by {desk.actor.name}"
    return Change(
        verb="discard",
        done="discarded",
        sources=ACTIONS["discard"],
        apply=lambda storage, ids: dict.fromkeys(storage.discard_dead(ids, reason), "discarded"),
        reason=reason,
    )


# --- ends -----------------------------------------------------------------------------------------


def cancel(desk: Desk, reason: str = "", force: bool = False) -> Change:
    """Cancel waiting jobs, and ask running ones to stop; with `force` end their runs instead."""
    reason = reason or f"cancelled by {desk.actor.name}"

    def apply(storage: Storage, ids: Sequence[UUID]) -> dict[UUID, str]:
        done = dict.fromkeys(storage.cancel_waiting(ids, reason), "cancelled")
        rest = [job_id for job_id in ids if job_id not in done]
        if force:
            return done | dict.fromkeys(_force(desk, storage, rest, reason), "cancelled")
        return done | dict.fromkeys(storage.ask_to_cancel(rest, reason) if rest else (), ASKED)

    return Change(
        verb="cancel",
        done="cancelled",
        sources=ACTIONS["cancel"],
        apply=apply,
        follow=_follow_cancel,
        reason=reason,
    )


def _follow_cancel(desk: Desk, changed: Sequence[UUID]) -> None:
    announce_ends(desk, changed)
    keys = set(jobs(desk, changed).exclude(limit_key=None).values_list("limit_key", flat=True))
    if keys:
        desk.after_commit(lambda: hints.send(desk.backend, admit(desk.storage(), keys).queues))


def _force(desk: Desk, storage: Storage, ids: Sequence[UUID], reason: str) -> set[UUID]:
    """End the runs of those of `ids` that are running and not locked; return which."""
    running = jobs(desk, ids).filter(state=State.RUNNING).order_by("id")
    done: set[UUID] = set()
    for job_id, fence, worker in list(running.values_list("id", "fence", "worker")):
        assert worker is not None  # a constraint: what runs has an owner
        try:
            with transaction.atomic(using=desk.database):  # a refused lock ends a savepoint only
                if storage.force_cancel(job_id, fence, worker, reason):
                    done.add(job_id)
        except RowLocked:
            continue
    return done


# --- changes of what waits ------------------------------------------------------------------------


def reschedule(desk: Desk, run_at: datetime | timedelta, dues: Dues | None = None) -> Change:
    """Make waiting jobs due at `run_at` (a delay counts from now), or at their times in `dues`."""
    moment = checked_moment(desk, run_at)

    def apply(storage: Storage, ids: Sequence[UUID]) -> dict[UUID, str]:
        times = [moment if dues is None else dues[job_id] for job_id in ids]
        done = storage.reschedule_many(ids, times, desk.options.aging_seconds)
        return dict.fromkeys(done, "rescheduled")

    return Change(
        verb="reschedule",
        done="rescheduled",
        sources=WAITING,
        apply=apply,
        follow=send_hints,
        detail={"run_at": moment.isoformat()},
    )


def run_now(desk: Desk) -> Change:
    """Make waiting jobs due now."""

    def apply(storage: Storage, ids: Sequence[UUID]) -> dict[UUID, str]:
        done = storage.run_now_many(ids, desk.options.aging_seconds)
        return dict.fromkeys(done, "made due now")

    return Change(
        verb="run_now", done="made due now", sources=WAITING, apply=apply, follow=send_hints
    )


def reprioritize(desk: Desk, priority: int) -> Change:
    """Give waiting jobs another priority."""
    check_priority(priority)

    def apply(storage: Storage, ids: Sequence[UUID]) -> dict[UUID, str]:
        done = storage.reprioritize_many(ids, priority, desk.options.aging_seconds)
        return dict.fromkeys(done, "reprioritized")

    return Change(
        verb="reprioritize",
        done="reprioritized",
        sources=WAITING,
        apply=apply,
        follow=send_hints,
        detail={"priority": priority},
    )


def move(desk: Desk, queue: str) -> Change:
    """Put waiting jobs into another queue."""
    check_queue(desk.backend, queue)
    return Change(
        verb="move",
        done="moved",
        sources=WAITING,
        apply=lambda storage, ids: dict.fromkeys(storage.move_many(ids, queue), "moved"),
        follow=send_hints,
        detail={"queue": queue},
    )


# --- what may be asked for ------------------------------------------------------------------------


def checked_moment(desk: Desk, run_at: datetime | timedelta) -> datetime:
    """Return `run_at` as an aware time; a delay counts from now on the database's clock.

    Raise InvalidRunAfter unless it lies in 1970 … 9999.
    """
    check_run_after(run_at)
    if isinstance(run_at, timedelta):
        return desk.storage().clock() + run_at
    return as_moment(run_at)


def check_priority(priority: object) -> None:
    """Raise InvalidArgument unless `priority` is one that a job may have."""
    number = priority if isinstance(priority, int) and not isinstance(priority, bool) else None
    if number is None or not TASK_MIN_PRIORITY <= number <= TASK_MAX_PRIORITY:
        raise InvalidArgument(
            f"A priority is a whole number from {TASK_MIN_PRIORITY} to {TASK_MAX_PRIORITY}, "
            f"not {priority!r}."
        )


def check_queue(backend: str, queue: str) -> None:
    """Raise InvalidArgument unless `queue` is one that jobs of this alias may be in."""
    check_name(queue)
    params = settings.TASKS.get(backend, {})
    known = params.get("QUEUES", [DEFAULT_TASK_QUEUE_NAME])
    if known and queue not in known:
        raise InvalidArgument(
            f"Queue {queue!r} is not in QUEUES of TASKS[{backend!r}]; it has "
            f"{', '.join(sorted(known))}."
        )
