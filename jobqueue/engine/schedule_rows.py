"""Schedules as rows and as keywords, and whether one could make a job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jobqueue.compat import InvalidTask
from jobqueue.conf import options_for
from jobqueue.declarations import COLUMNS, Declaration, declaration
from jobqueue.engine.arguments import check_call
from jobqueue.engine.registry import registry
from jobqueue.exceptions import InvalidSchedule, TaskNotRegistered
from jobqueue.models import Schedule
from jobqueue.models.schedule import aware
from jobqueue.payload import encode_arguments
from jobqueue.storage.schedules import ScheduleRow


def check_schedule(schedule: Schedule) -> None:
    """Raise InvalidSchedule, by column, if a schedule, saved or not, could make no job."""
    try:
        checked(declaration(schedule.name, keywords_of(schedule)), schedule.backend)
    except InvalidSchedule as error:
        raise InvalidSchedule(
            {COLUMNS.get(keyword, keyword): text for keyword, text in error.errors.items()}
        ) from None


def checked(one: Declaration, backend: str) -> Declaration:
    """Return a declaration whose task is known and takes its arguments. Raise InvalidSchedule."""
    try:
        task = registry.get(one.task)
    except TaskNotRegistered as error:
        raise InvalidSchedule({"task": str(error)}) from None
    try:
        check_call(task.func, task.takes_context, list(one.args), dict(one.kwargs))
        encode_arguments(one.args, one.kwargs, options_for(backend).max_arguments_bytes)
    except (ValueError, TypeError) as error:
        raise InvalidSchedule({"args": str(error)}) from None
    try:
        task.using(backend=backend, queue_name=one.queue_name or None, priority=one.priority)
    except InvalidTask as error:
        raise InvalidSchedule({"queue_name": str(error)}) from None
    return one


def columns_of(one: Declaration, backend: str) -> dict[str, Any]:
    """Return the columns that a declaration decides; raise as `encode_arguments` does."""
    limit = options_for(backend).max_arguments_bytes
    return {
        "task": one.task,
        "arguments": json.loads(encode_arguments(one.args, one.kwargs, limit)),
        "queue_name": one.queue_name,
        "priority": one.priority,
        **{f: getattr(one.plan, f) for f in one.plan.__dataclass_fields__},
        **{f: getattr(one.policy, f) for f in one.policy.__dataclass_fields__},
    }


def keywords_of(row: Schedule) -> dict[str, Any]:
    """Return a row as the keywords that would make it."""
    arguments = row.arguments if isinstance(row.arguments, dict) else {"arguments": row.arguments}
    return {
        "task": row.task,
        **arguments,
        "queue_name": row.queue_name,
        "priority": row.priority,
        "cron": row.cron,
        "every": row.every_seconds,
        "at": aware(row.at),
        "time_zone": row.time_zone,
        "start": aware(row.start_at),
        "end": aware(row.end_at),
        "missed": row.missed,
        "missed_limit": row.missed_limit,
        "overlap": row.overlap,
        "jitter": row.jitter_seconds,
        "enabled": row.enabled,
    }


def set_columns(row: Schedule, values: Mapping[str, Any]) -> list[str]:
    """Set the columns that differ; return their names."""
    changed = [name for name, value in values.items() if aware(getattr(row, name)) != value]
    for name in changed:
        setattr(row, name, values[name])
    return changed


def row_of(schedule: Schedule) -> ScheduleRow:
    """Return a schedule as a scheduler would read it."""
    values: dict[str, Any] = {name: getattr(schedule, name, "") for name in ScheduleRow._fields}
    return ScheduleRow(**values | {"arguments": json.dumps(schedule.arguments), "problem": ""})
