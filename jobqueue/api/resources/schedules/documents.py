"""A schedule as it is answered; its arguments as those of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from jobqueue.api.caller import Caller
from jobqueue.api.documents import Document, nullable_time
from jobqueue.api.resources.jobs.documents import Arguments
from jobqueue.api.resources.jobs.payload import arguments_of
from jobqueue.api.values import moment, text
from jobqueue.declarations import Declaration
from jobqueue.disclosure import shown_error
from jobqueue.models import Schedule
from jobqueue.plan import MISSED, OVERLAP, PlannedTick

STATES = ("ticking", "over", "disabled", "failing", "undeclared")
ACTIONS = (
    "update_schedule",
    "enable_schedule",
    "disable_schedule",
    "delete_schedule",
    "run_schedule",
)


class NextTick(Document):
    """A tick to come."""

    at = serializers.DateTimeField(help_text="In UTC.")
    local = serializers.DateTimeField(help_text="In the schedule's zone.")
    note = serializers.CharField(allow_blank=True, help_text="What is odd about it.")


class PastTickDocument(Document):
    """A tick that has come."""

    tick = serializers.DateTimeField()
    at = serializers.DateTimeField(help_text="When a scheduler settled it.")
    outcome = serializers.ChoiceField(choices=["enqueued", "overlap", "missed", "crowded", "twin"])
    missed = serializers.IntegerField(help_text="Ticks before it that came too late.")
    job_id = serializers.UUIDField(allow_null=True)
    job_state = serializers.CharField(allow_null=True, help_text="null: it was pruned, or none.")


class PlanPreview(Document):
    """When a plan ticks."""

    words = serializers.CharField()
    next_ticks = NextTick(many=True)


class ScheduleDocument(PlanPreview):
    """One schedule."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=STATES)
    late = serializers.BooleanField(help_text="It is due, and no scheduler ticks it.")
    error = serializers.CharField(allow_blank=True, help_text="Why it cannot tick.")
    source = serializers.ChoiceField(choices=["code", "database"])
    enabled = serializers.BooleanField()
    task = serializers.CharField()
    arguments = Arguments(allow_null=True)
    payload_hidden = serializers.BooleanField()
    queue_name = serializers.CharField(allow_blank=True, help_text="Empty: the task's own.")
    priority = serializers.IntegerField(allow_null=True, help_text="null: the task's own.")
    cron = serializers.CharField(allow_blank=True)
    every = serializers.IntegerField(allow_null=True, help_text="Seconds.")
    at = nullable_time()
    time_zone = serializers.CharField()
    start = nullable_time("No tick before.")
    end = nullable_time("No tick after.")
    missed = serializers.ChoiceField(choices=MISSED)
    missed_limit = serializers.IntegerField()
    overlap = serializers.ChoiceField(choices=OVERLAP)
    jitter = serializers.IntegerField(help_text="Seconds.")
    last = PastTickDocument(allow_null=True)
    version = serializers.IntegerField()
    allowed_actions = serializers.ListField(child=serializers.ChoiceField(choices=ACTIONS))


def schedule_document(found: Any, caller: Caller) -> dict[str, Any]:
    """Return a `ScheduleStatus` as it is answered."""
    row: Schedule = found.schedule
    is_hidden = not caller.sees_payload
    return {
        "id": row.pk,
        "name": text(row.name),
        "state": found.state,
        "late": found.is_late,
        "words": text(found.words),
        "next_ticks": next_ticks(found.next_ticks),
        "error": text(shown_error(row.error, task=row.task, may_see_payload=not is_hidden)),
        "source": row.source,
        "enabled": row.enabled,
        "task": text(row.task),
        "arguments": None if is_hidden else arguments_of(row.arguments, row.task),
        "payload_hidden": is_hidden,
        "queue_name": text(row.queue_name),
        "priority": row.priority,
        "cron": text(row.cron),
        "every": row.every_seconds,
        "at": moment(row.at),
        "time_zone": text(row.time_zone),
        "start": moment(row.start_at),
        "end": moment(row.end_at),
        "missed": row.missed,
        "missed_limit": row.missed_limit,
        "overlap": row.overlap,
        "jitter": row.jitter_seconds,
        "last": None if found.last is None else past_tick(found.last),
        "version": row.version,
        "allowed_actions": _actions(row, caller),
    }


def preview_document(one: Declaration, ticks: Sequence[PlannedTick]) -> dict[str, Any]:
    """Return when a plan ticks, as it is answered."""
    return {"words": text(one.plan.words()), "next_ticks": next_ticks(ticks)}


def next_ticks(ticks: Sequence[PlannedTick]) -> list[dict[str, Any]]:
    """Return ticks to come as they are answered."""
    return [{"at": t.at, "local": t.local.isoformat(), "note": text(t.note)} for t in ticks]


def past_tick(tick: Any) -> dict[str, Any]:
    """Return a `PastTick` as it is answered."""
    return {
        "tick": moment(tick.tick),
        "at": moment(tick.at),
        "outcome": tick.outcome,
        "missed": tick.missed,
        "job_id": None if tick.job_id is None else str(tick.job_id),
        "job_state": tick.job_state,
    }


def _actions(row: Schedule, caller: Caller) -> list[str]:
    is_coded = row.source == "code"
    fitting = {
        "update_schedule": not is_coded,
        "enable_schedule": not row.enabled,
        "disable_schedule": row.enabled,
        "delete_schedule": not is_coded or row.undeclared_at is not None,
        "run_schedule": True,
    }
    return [name for name, fits in fitting.items() if fits and caller.may(name)]
