"""Ticking: each instant of a schedule becomes at most one job, however many schedulers run.

Nobody leads. A scheduler reads what is due, decides, and settles it in one transaction whose
first statement moves the schedule's `last_tick` by compare-and-set: of several, one makes the
job. All times come from the database's clock; one that steps back makes ticks late, never two.

A schedule that cannot tick (its plan or arguments are wrong, its task is unknown here) keeps the
reason in its row, is looked at again after `ERROR_LOOK_SECONDS`, and holds up no other. One that
was declared in code ticks only where the code still declares it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from jobqueue.engine.limits import ADMIT_LIMIT
from jobqueue.engine.schedule_jobs import (
    Made,
    announce_made,
    decide,
    insert_made,
    jobs_of,
    live_before,
    plan_of,
    policy_of,
    task_of,
)
from jobqueue.events import emit, line_of
from jobqueue.exceptions import InvalidSchedule, KeyBusy
from jobqueue.payload import storable_text
from jobqueue.plan import LATEST, Due, Plan, Policy, due
from jobqueue.storage import Storage
from jobqueue.storage.errors import is_away, may_pass
from jobqueue.storage.schedules import Move, NewTick, ScheduleRow

ERROR_LOOK_SECONDS = 30.0
"""Pause before a schedule that could not tick is looked at again: a deploy may have mended it."""
MAX_ERROR_BYTES = 1_000

IsDeclared = Callable[[str, str], bool]
"""Whether the code of this process declares a schedule: (alias, name)."""


def tick_schedules(
    storage: Storage,
    aliases: Sequence[str],
    is_declared: IsDeclared,
    *,
    everything: bool = False,
    now: datetime | None = None,
) -> set[str]:
    """Settle the schedules of `aliases` that are due; return the queues that got a ready job.

    everything: look also at those that are not due, for what was changed behind our back.
    """
    clock, rows = storage.read_schedules(aliases, everything=everything, now=now)
    queues: set[str] = set()
    random.shuffle(rows)  # schedulers that begin at the same time share the work
    for row in rows:
        if row.source != "code" or is_declared(row.backend, row.name):
            queues |= _settle_apart(storage, row, clock, now)
    queues.update(storage.admit_overlapping(ADMIT_LIMIT, now))
    return queues


def _settle_apart(
    storage: Storage, row: ScheduleRow, clock: datetime, now: datetime | None
) -> set[str]:
    """Settle one schedule; whatever is wrong with it is its own affair."""
    try:
        return _settle(storage, row, clock, now)
    except Exception as error:
        if is_away(error):
            raise
        if may_pass(error) or isinstance(error, KeyBusy):
            return set()  # it is still due at the next turn
        _mark(storage, row, _sentence(error), clock, now)
        return set()


def _settle(storage: Storage, row: ScheduleRow, clock: datetime, now: datetime | None) -> set[str]:
    if not row.enabled and not row.plan:
        return set()  # never seen enabled: there is nothing to remember
    if row.problem:
        raise InvalidSchedule({"row": row.problem})
    plan, policy = plan_of(row), policy_of(row)
    fingerprint = plan.fingerprint(row.enabled)
    if row.last_tick is None or row.plan != fingerprint:
        # New, or changed behind our back: it counts from now, and does not fire by itself.
        _move(storage, row, Move(fingerprint, clock, _look_at(plan, clock)), now)
        return set()
    if not row.enabled:
        return set()
    found = due(plan, policy, row.last_tick, clock)
    if found.newest is None:
        move = Move(row.plan, row.last_tick, _look_at(plan, max(row.last_tick, clock)))
        if row.error or row.look_at != move.look_at:
            _move(storage, row, move, now)
        return set()
    return _tick(storage, row, plan, policy, found, clock, now)


def _tick(
    storage: Storage,
    row: ScheduleRow,
    plan: Plan,
    policy: Policy,
    found: Due,
    clock: datetime,
    now: datetime | None,
) -> set[str]:
    task = task_of(row)
    times = [(t, _run_at(policy.delay(row.name, t), t, clock)) for t in found.ticks]
    jobs = jobs_of(row, task, times)
    assert found.newest is not None
    move = Move(row.plan, found.newest, _look_at(plan, max(found.newest, clock)))

    def run() -> Made | None:
        if not storage.move_schedule(row, move, now):
            return None
        made = decide(policy, jobs, live_before(storage, row.name, policy))
        made = insert_made(storage, task, made, now)
        storage.insert_ticks(row.id, _history(found, made), now)
        return made

    made = storage.in_one(run)
    if made is None:
        return set()  # another scheduler was faster
    _tell(row, found, made)
    announce_made(made, row.backend)
    return set(made.ready_queues)


def _run_at(delay: timedelta, tick: datetime, clock: datetime) -> datetime | None:
    """Return when a job is due, None for now: one that is late is not due in the past."""
    run_at = tick + delay
    return run_at if run_at > clock else None


def _look_at(plan: Plan, after: datetime) -> datetime:
    return plan.after(after) or LATEST


def _history(found: Due, made: Made) -> list[NewTick]:
    if not found.ticks:
        assert found.newest is not None
        return [NewTick(tick=found.newest, outcome="missed", missed=found.missed - 1)]
    ticks = []
    for (job, outcome), tick in zip(made.outcomes, found.ticks, strict=True):
        job_id = job.id if outcome == "enqueued" else None
        missed = found.missed if tick == found.ticks[0] else 0
        ticks.append(NewTick(tick=tick, outcome=outcome, job_id=job_id, missed=missed))
    return ticks


# --- what is told ----------------------------------------


def _tell(row: ScheduleRow, found: Due, made: Made) -> None:
    emit(
        "schedule.ticked",
        level=logging.DEBUG,
        schedule=row.name,
        tick=found.newest,
        jobs=len(made.jobs),
    )
    if found.missed:
        emit("schedule.missed", schedule=row.name, count=found.missed, policy=row.missed)
    skipped = [outcome for _, outcome in made.outcomes if outcome != "enqueued"]
    if skipped:
        emit("schedule.overlapped", schedule=row.name, count=len(skipped), reason=skipped[0])
    if row.error:
        emit("schedule.recovered", schedule=row.name)


def _move(storage: Storage, row: ScheduleRow, move: Move, now: datetime | None) -> None:
    if storage.move_schedule(row, move, now) and row.error:
        emit("schedule.recovered", schedule=row.name)


def _mark(
    storage: Storage, row: ScheduleRow, error: str, clock: datetime, now: datetime | None
) -> None:
    """Keep in the row why it cannot tick; say so once."""
    if not row.enabled or (row.error == error and row.look_at and row.look_at > clock):
        return
    look_at = clock + timedelta(seconds=ERROR_LOOK_SECONDS)
    moved = storage.move_schedule(row, Move(row.plan, row.last_tick, look_at, error), now)
    if moved and row.error != error:
        emit("schedule.failed", level=logging.ERROR, schedule=row.name, error=error)


def _sentence(error: Exception) -> str:
    text = str(error) if isinstance(error, InvalidSchedule) else line_of(error, None)
    return storable_text(text.strip().split("\n", 1)[0], MAX_ERROR_BYTES)
