"""What a client says of a bulk operation: which verb, which jobs, and how."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from jobqueue.api.inputs import Flag, Number
from jobqueue.api.problems import FieldError, Problem
from jobqueue.api.resources.jobs.choosing import check_filter
from jobqueue.api.resources.jobs.fields import Moment, Priority, Text
from jobqueue.api.serializers import StrictSerializer
from jobqueue.conf import MAX_JOB_REASON_LENGTH, MAX_QUEUE_NAME_LENGTH
from jobqueue.engine.bulk import MAX_BULK_IDS, MAX_SPREAD_SECONDS
from jobqueue.engine.bulk_plan import BULK_VERBS
from jobqueue.exceptions import InvalidFilter
from jobqueue.filters import parse


class BulkInput(StrictSerializer):
    """One verb for all jobs that a filter matches, or that a list of ids names."""

    verb = serializers.ChoiceField(choices=list(BULK_VERBS))
    filter = Text(required=False, max_length=4_000, help_text="Such as state:dead queue:mail.")
    ids = serializers.ListField(
        child=serializers.UUIDField(), required=False, min_length=1, max_length=MAX_BULK_IDS
    )
    dry_run = Flag(
        required=False, default=False, help_text="Only tell what it would be about (200)."
    )
    run_at = Moment(required=False, help_text="For requeue and reschedule: when they are due.")
    spread = Number(
        required=False,
        min_value=0.001,
        max_value=MAX_SPREAD_SECONDS,
        help_text="For requeue and reschedule: seconds over which due times are spread.",
    )
    priority = Priority(required=False, help_text="For reprioritize.")
    queue_name = Text(required=False, max_length=MAX_QUEUE_NAME_LENGTH, help_text="For move.")
    reason = Text(
        required=False,
        allow_blank=True,
        default="",
        max_length=MAX_JOB_REASON_LENGTH,
        help_text="For cancel and discard.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a choice that is none, and a filter that the caller may not use."""
        if ("filter" in attrs) == ("ids" in attrs):
            raise serializers.ValidationError("give either filter or ids")
        if "filter" in attrs:
            _check_filter(attrs["filter"], self.context["view"].caller)
        return attrs


def _check_filter(given: str, caller: Any) -> None:
    try:
        chosen = parse(given)
    except InvalidFilter as error:
        raise Problem(
            "invalid-filter",
            str(error),
            errors=[FieldError(error.problem, pointer="/filter")],
            position=error.position,
        ) from error
    check_filter(chosen, caller)


def choice_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return which jobs are meant, for `jobqueue.control`."""
    return {name: body[name] for name in ("filter", "ids") if name in body}


def parameters_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return how it is done, for `jobqueue.control`."""
    names = {"run_at": "run_at", "spread": "spread", "priority": "priority", "queue_name": "queue"}
    given = {ours: body[theirs] for theirs, ours in names.items() if theirs in body}
    return given | ({"reason": body["reason"]} if body["reason"] else {})
