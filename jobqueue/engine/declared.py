"""Schedules declared in code, and their rows.

    from jobqueue import schedule

    schedule("nightly report", report, cron="0 6 * * *", time_zone="Europe/Paris")

Every scheduler compares its declarations with the rows when it starts, and again each minute:
while two versions of the code run, the rows follow now the one, now the other, and soon after the
old one has gone they are the new one's. What a row's plan becomes counts from then on.

A schedule that the code does not declare any more keeps its row and its history, is marked, and
ticks no more: a scheduler makes jobs only for what its own code declares. One that comes back
after `ABSENT_SECONDS` counts from then; sooner, it was only a deploy.

Whether it is enabled is the operators' to say, and stays as they said.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS, Task
from jobqueue.conf import options_for
from jobqueue.declarations import Declaration, declaration
from jobqueue.engine.schedule_rows import columns_of
from jobqueue.events import emit
from jobqueue.models import Schedule
from jobqueue.models.schedule import CODE, aware

ABSENT_SECONDS = 600.0
"""A schedule that no code declared for longer had gone, and is new when it comes back."""

_declared: dict[tuple[str, str], Declaration] = {}
_told: set[str] = set()


def schedule(
    name: str,
    task: Task[..., Any] | str,
    *,
    backend: str | None = None,
    **plan: Any,
) -> None:
    """Declare a schedule beside its task; see `jobqueue.declarations` for the keywords.

    name: unique among the schedules of a database. backend: TASKS alias; default: the task's.
    Raise InvalidSchedule. A second declaration of the same name replaces the first.
    """
    path = task if isinstance(task, str) else task.module_path
    of_task = DEFAULT_TASK_BACKEND_ALIAS if isinstance(task, str) else task.backend
    alias = backend or of_task
    _declared[alias, name] = declaration(name, {**plan, "task": path})


def declarations(alias: str) -> dict[str, Declaration]:
    """Return what the code declares for a TASKS alias, by name; the settings win."""
    beside_tasks = {name: one for (of, name), one in _declared.items() if of == alias}
    in_settings = {one.name: one for one in options_for(alias).schedules}
    both = beside_tasks | in_settings
    return {name: one for name, one in both.items() if one.enabled}


def declared_twice(alias: str) -> set[str]:
    """Return the names that both the settings and a call of schedule() declare."""
    return {name for of, name in _declared if of == alias} & {
        one.name for one in options_for(alias).schedules
    }


def not_taken_over(alias: str) -> list[Declaration]:
    """Return what the code declares and no scheduler has made a row of yet, by name.

    The modules with tasks have to be imported for those that are declared beside them.
    """
    declared = declarations(alias)
    rows = Schedule.objects.using(options_for(alias).database).filter(name__in=declared)
    there = set(rows.values_list("name", flat=True))
    return [declared[name] for name in sorted(declared.keys() - there)]


def is_declared(alias: str, name: str) -> bool:
    """Return whether the code of this process declares a schedule."""
    return name in declarations(alias)


def sync(alias: str) -> list[str]:
    """Make the rows of an alias what its code declares; return the names that were changed.

    Reads only, as long as nothing differs. A row that somebody holds is left for the next time.
    """
    database = options_for(alias).database
    declared = declarations(alias)
    rows = {row.name: row for row in Schedule.objects.using(database).filter(name__in=declared)}
    changed = []
    for name, one in declared.items():
        try:
            values = {"backend": alias, "source": CODE, **columns_of(one, alias)}
            if name not in rows or _differs(rows[name], values):
                changed += [name] if _write(database, name, values) else []
        except (ValueError, TypeError) as error:
            _refuse(name, error)
    _mark_undeclared(database, alias, declared)
    return changed


def _differs(row: Schedule, values: Mapping[str, Any]) -> bool:
    stored = {name: aware(getattr(row, name)) for name in values}
    return stored != values or row.undeclared_at is not None


def _write(database: str, name: str, values: Mapping[str, Any]) -> bool:
    """Make or change the row of a declared schedule; return whether it was done."""
    try:
        with transaction.atomic(using=database):
            rows = Schedule.objects.using(database).select_for_update(skip_locked=True)
            row = rows.filter(name=name).first() or Schedule(name=name)
            is_new = row.pk is None
            if not is_new and not _differs(row, values):
                return False
            _declare_again(row)
            for field, value in values.items():
                setattr(row, field, value)
            row.save(using=database)
    except IntegrityError:
        return False  # another scheduler made it first, or somebody holds it
    emit("schedule.declared", schedule=name, new=is_new)
    return True


def _declare_again(row: Schedule) -> None:
    """Take back the mark of a schedule whose code had gone."""
    since = row.undeclared_at
    if since is None:
        return
    Schedule.objects.using(row._state.db).filter(pk=row.pk).update(undeclared_at=None)
    if timezone.now() - since > timedelta(seconds=ABSENT_SECONDS):
        row.plan = ""  # counts from now


def _mark_undeclared(database: str, alias: str, declared: Mapping[str, Declaration]) -> None:
    rows = Schedule.objects.using(database).filter(
        source=CODE, backend=alias, undeclared_at__isnull=True
    )
    gone = list(rows.exclude(name__in=declared).values_list("name", flat=True))
    if gone and rows.filter(name__in=gone).update(undeclared_at=Now()):
        emit("schedule.undeclared", level=logging.WARNING, schedules=",".join(gone))


def _refuse(name: str, error: Exception) -> None:
    """Tell once that a declaration cannot be used; a system check says so before."""
    text = f"{name}: {error}"
    if text not in _told:
        _told.add(text)
        emit("schedule.refused", level=logging.ERROR, schedule=name, error=str(error))
