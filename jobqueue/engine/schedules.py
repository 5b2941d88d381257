"""What operators may do with schedules: make, change, enable, disable, run now, delete, look ahead.

Each change is one transaction with its Action row (`target` is the schedule's name). None makes
a job but `run_schedule`, and `run_schedule_once` for requests that may be repeated: what is changed
or enabled counts from now, by the database's clock.

The plan of a schedule that is declared in code is changed there; operators enable, disable and
run it. The keywords are those of `jobqueue.declarations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connections, transaction

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS, InvalidTask
from jobqueue.conf import options_for
from jobqueue.declarations import Declaration, declaration
from jobqueue.engine.idempotency import Done, Given, once
from jobqueue.engine.making import EXPOSURE, exposed_task
from jobqueue.engine.operations import Actor, Desk, Outcome
from jobqueue.engine.queues import MAX_REASON_LENGTH
from jobqueue.engine.schedule_jobs import (
    announce_made,
    decide,
    insert_made,
    jobs_of,
    live_before,
    policy_of,
    task_of,
)
from jobqueue.engine.schedule_rows import (
    checked,
    columns_of,
    keywords_of,
    row_of,
    set_columns,
)
from jobqueue.events import emit
from jobqueue.exceptions import (
    DeclaredInCode,
    InvalidSchedule,
    ScheduleChanged,
    ScheduleNotFound,
    TaskNotRegistered,
)
from jobqueue.models import Schedule
from jobqueue.models.schedule import CODE, aware
from jobqueue.plan import PlannedTick, preview
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.records import RequestKey, StoredAnswer

PREVIEWED = 5
MAX_PREVIEWED = 100
"""Ticks that are looked ahead: a page of them."""


# --- make and change ----------------------------------------


def create_schedule(
    name: str, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS, **given: Any
) -> Schedule:
    """Make a schedule; its first tick is the first after now.

    Raise InvalidSchedule, with a reason for each keyword, also where the name is taken; and
    TaskNotExposed for a task that is not offered on the actor's surface.
    """
    desk = Desk(actor, backend)
    one = _usable(declaration(name, given), backend, actor)

    def run(storage: Storage) -> Schedule:
        _require_ticks(one, storage.clock())
        row = Schedule(name=name, backend=backend, enabled=one.enabled, **columns_of(one, backend))
        try:
            with transaction.atomic(using=desk.database):
                row.save(using=desk.database)
        except IntegrityError:
            raise InvalidSchedule({"name": f"{name!r} is taken by another schedule"}) from None
        _record(desk, "create_schedule", row)
        return row

    return desk.transact(run)


def update_schedule(
    name: str,
    actor: Actor,
    *,
    version: int | None = None,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    **given: Any,
) -> Schedule:
    """Change some keywords of a schedule; the others stay.

    version: what the row had when it was read. A new plan counts from now. Raise as
    `create_schedule`, and DeclaredInCode, ScheduleNotFound, or ScheduleChanged if the version is
    another.
    """
    desk = Desk(actor, backend)

    def run(storage: Storage) -> Schedule:
        row = _locked(desk, name)
        if version is not None and row.version != version:
            raise ScheduleChanged(f"Schedule {name!r} is at version {row.version}, not {version}.")
        if row.source == CODE:
            raise DeclaredInCode(
                f"Schedule {name!r} is declared in code: change it there. Here it can be enabled, "
                "disabled and run."
            )
        one = _usable(declaration(name, _merged(row, given)), row.backend, actor)
        changed = set_columns(row, {**columns_of(one, row.backend), "enabled": one.enabled})
        if changed:
            if {"cron", "every_seconds", "at", "start_at", "end_at"} & set(changed):
                _require_ticks(one, storage.clock())
            row.save(using=desk.database)
            _record(desk, "update_schedule", row, fields=changed)
        return row

    return desk.transact(run)


def enable_schedule(
    name: str, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS
) -> Outcome:
    """Let a schedule tick again; its next tick is the first after now."""
    return _switch(name, actor, True, "enabled", "", backend)


def disable_schedule(
    name: str, actor: Actor, reason: str = "", *, backend: str = DEFAULT_TASK_BACKEND_ALIAS
) -> Outcome:
    """Let a schedule tick no more, until it is enabled. Jobs that it has made go on."""
    return _switch(name, actor, False, "disabled", reason, backend)


def delete_schedule(
    name: str, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS
) -> Outcome:
    """Delete a schedule with the history of its ticks; its jobs stay.

    Raise DeclaredInCode for one that the code declares: it would come back at once.
    """
    desk = Desk(actor, backend)

    def run(storage: Storage) -> Outcome:
        row = _locked(desk, name)
        if row.source == CODE and row.undeclared_at is None:
            raise DeclaredInCode(
                f"Schedule {name!r} is declared in code: remove it there first, or disable it."
            )
        _record(desk, "delete_schedule", row)
        row.delete(using=desk.database)
        return Outcome("deleted", given_counts={"deleted": 1})

    return desk.transact(run)


def _switch(
    name: str, actor: Actor, enabled: bool, done: str, reason: str, backend: str
) -> Outcome:
    desk = Desk(actor, backend)

    def run(storage: Storage) -> Outcome:
        row = _locked(desk, name)
        if row.enabled == enabled:
            return Outcome(done, given_counts={f"skipped: already {done}": 1})
        row.enabled = enabled
        try:
            row.save(using=desk.database)
        except InvalidSchedule:
            if enabled:
                raise
            # One that cannot tick can be switched off all the same.
            Schedule.objects.using(desk.database).filter(pk=row.pk).update(enabled=False)
        verb = "enable_schedule" if enabled else "disable_schedule"
        _record(desk, verb, row, reason=reason[:MAX_REASON_LENGTH])
        return Outcome(done, given_counts={done: 1})

    return desk.transact(run)


# --- run now ----------------------------------------


def run_schedule(name: str, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> Outcome:
    """Make a job of a schedule now, also of one that is disabled; it stands for no tick.

    The overlap policy holds: with "skip" none is made while an earlier one has not ended, with
    "queue" it waits. Raise InvalidSchedule for a row that no job can be made of.
    """
    desk = Desk(actor, backend)
    return desk.transact(lambda storage: _run_now(desk, storage, _locked(desk, name)))


def run_schedule_once(
    name: str,
    actor: Actor,
    answer: Callable[[Outcome], StoredAnswer],
    *,
    request: RequestKey | None,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> Given:
    """Do as `run_schedule`, once for all requests with one key; return what `answer` said of it.

    See `jobqueue.engine.idempotency.once`, which also says what else it raises. A scheduler that
    holds the row is waited for.
    """
    desk = Desk(actor, backend)

    def run(storage: Storage) -> Done:
        return Done(answer(_run_now(desk, storage, _locked(desk, name, nowait=False))))

    return once(desk, request, run)


def _run_now(desk: Desk, storage: Storage, schedule: Schedule) -> Outcome:
    """Make a job of a schedule whose row is locked."""
    row, name, actor = row_of(schedule), schedule.name, desk.actor.name
    try:
        task, policy = task_of(row), policy_of(row)
        (job,) = jobs_of(row, task, [(None, None)])
    except (ValueError, TypeError, TaskNotRegistered, InvalidTask) as error:
        raise InvalidSchedule({"task": str(error)}) from error
    job = replace(job, created_by=actor)
    made = decide(policy, [job], live_before(storage, name, policy))
    ((_, outcome),) = made.outcomes
    if outcome != "enqueued":
        return Outcome("started", given_counts={"skipped: an earlier run has not ended": 1})
    made = insert_made(storage, task, made)
    if not made.jobs:
        return Outcome("started", given_counts={"skipped: a job with its unique key waits": 1})
    announce_made(made, row.backend)
    desk.record("run_schedule", 1, target=name, job_id=job.id)
    desk.hint(made.ready_queues)
    desk.after_commit(lambda: emit("schedule.started", schedule=name, job=job.id, actor=actor))
    return Outcome("started", {job.id: "started"})


# --- look ahead ----------------------------------------


def preview_schedule(
    schedule: Schedule | Declaration,
    count: int = PREVIEWED,
    *,
    after: datetime | None = None,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> list[PlannedTick]:
    """Return the next ticks of a schedule, saved or not: what every surface shows.

    after: default: now on the database's clock, or the last tick if that is later. Nothing asks
    whether it is enabled. Raise InvalidSchedule.
    """
    plan = schedule.plan if isinstance(schedule, Declaration) else schedule.as_plan()
    if after is None:
        options = options_for(backend)
        after = storage_for(connections[options.database], options).clock()
        if isinstance(schedule, Schedule) and (last := aware(schedule.last_tick)) is not None:
            after = max(after, last)
    return preview(plan, after, min(max(count, 0), MAX_PREVIEWED))


# --- parts ----------------------------------------


def _usable(one: Declaration, backend: str, actor: Actor) -> Declaration:
    """Return a declaration that could make a job, of a task that the actor may schedule."""
    if actor.surface in EXPOSURE:
        exposed_task(one.task, actor.surface)
    return checked(one, backend)


def _require_ticks(one: Declaration, now: datetime) -> None:
    """Raise InvalidSchedule if the plan has no tick left: it would be kept, and never tick."""
    if one.plan.after(now) is None:
        keyword = "end" if one.plan.at is None else "at"
        raise InvalidSchedule({keyword: "has passed: there is no tick left"})


def _merged(row: Schedule, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's keywords with the given ones; one kind of plan takes the place of another."""
    kinds = {"cron", "every", "at"}
    replaced = kinds if kinds & given.keys() else set()
    kept = {name: value for name, value in keywords_of(row).items() if name not in replaced}
    return kept | dict(given)


def _locked(desk: Desk, name: str, nowait: bool = True) -> Schedule:
    """Return the row, locked; one that a scheduler holds is tried again by `Desk.transact`.

    nowait: or waited for, where the transaction bounds that. Raise ScheduleNotFound.
    """
    rows = Schedule.objects.using(desk.database).filter(name=name)
    row = rows.select_for_update(nowait=nowait).first()
    if row is None:
        raise ScheduleNotFound(f"There is no schedule {name!r} in database {desk.database!r}.")
    return row


def _record(desk: Desk, verb: str, row: Schedule, **detail: Any) -> None:
    kept = {name: value for name, value in detail.items() if value}
    desk.record(verb, 1, target=row.name, detail=kept or None)
    name, actor = row.name, desk.actor
    desk.after_commit(
        lambda: emit(
            "schedule.changed", schedule=name, verb=verb, actor=actor.name, surface=actor.surface
        )
    )
