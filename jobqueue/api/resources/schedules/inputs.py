"""Schedules as clients write them: the keywords of `jobqueue.declarations`, in JSON types.

What they mean is judged where schedules are made; here only that each has the right type.
"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from jobqueue.api.inputs import Flag
from jobqueue.api.resources.jobs.fields import Anything, Text, Whole
from jobqueue.api.serializers import StrictSerializer
from jobqueue.conf import MAX_QUEUE_NAME_LENGTH, MAX_TASK_NAME_LENGTH
from jobqueue.cron import MAX_EXPRESSION_LENGTH, MAX_ZONE_LENGTH
from jobqueue.declarations import MAX_SCHEDULE_NAME_LENGTH
from jobqueue.engine.schedules import MAX_PREVIEWED, PREVIEWED
from jobqueue.plan import MAX_EVERY_SECONDS, MAX_JITTER_SECONDS, MAX_MISSED_LIMIT, MISSED, OVERLAP

TIME = "A time; one without a zone is in that of the schedule."


def _time() -> Text:
    return Text(required=False, allow_null=True, max_length=64, help_text=TIME)


class PlanInput(StrictSerializer):
    """When it ticks: one of cron, every and at."""

    cron = Text(
        required=False,
        allow_blank=True,
        max_length=MAX_EXPRESSION_LENGTH,
        help_text="Minute, hour, day of month, month, day of week; or an @name.",
    )
    every = Whole(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_EVERY_SECONDS,
        help_text="Seconds.",
    )
    at = _time()
    time_zone = Text(required=False, max_length=MAX_ZONE_LENGTH, help_text="Such as Europe/Berlin.")
    start = _time()
    end = _time()


class PreviewInput(PlanInput):
    """A plan, and how many of its ticks are wanted."""

    count = Whole(required=False, default=PREVIEWED, min_value=1, max_value=MAX_PREVIEWED)


class ScheduleChange(PlanInput):
    """What to change of a schedule; the rest stays."""

    task = Text(required=False, max_length=MAX_TASK_NAME_LENGTH)
    args = serializers.ListField(child=Anything(), required=False)
    kwargs = serializers.DictField(child=Anything(), required=False)
    queue_name = Text(required=False, allow_blank=True, max_length=MAX_QUEUE_NAME_LENGTH)
    priority = Whole(required=False, allow_null=True, min_value=-100, max_value=100)
    missed = serializers.ChoiceField(choices=MISSED, required=False)
    missed_limit = Whole(required=False, min_value=1, max_value=MAX_MISSED_LIMIT)
    overlap = serializers.ChoiceField(choices=OVERLAP, required=False)
    jitter = Whole(required=False, min_value=0, max_value=MAX_JITTER_SECONDS)
    enabled = Flag(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse to change nothing."""
        if not attrs:
            raise serializers.ValidationError("give something to change")
        return attrs


class ScheduleInput(ScheduleChange):
    """A new schedule."""

    name = Text(max_length=MAX_SCHEDULE_NAME_LENGTH)
    task = Text(max_length=MAX_TASK_NAME_LENGTH, help_text="One that `/tasks/` lists.")


class SwitchInput(StrictSerializer):
    """Why."""

    reason = Text(required=False, allow_blank=True, default="", max_length=255)
