"""What the OpenAPI document says of enqueueing: answers, headers, examples. Declarations only."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers

from jobqueue.api.repeating import KEY, REPLAYED
from jobqueue.states import State

_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
_JOB = {
    "task": "shop.tasks.send_receipt",
    "args": [42],
    "run_after": "PT15M",
    "tags": ["order:42"],
}
_MADE = {
    "id": _ID,
    "url": f"/jobqueue/api/v1/jobs/{_ID}/",
    "task": "shop.tasks.send_receipt",
    "queue_name": "mail",
    "priority": 0,
    "state": "scheduled",
    "enqueued_at": "2030-01-31T08:00:00.123456Z",
    "run_at": "2030-01-31T08:15:00.123456Z",
    "expires_at": None,
    "tags": ["order:42"],
    "already_enqueued": False,
}
_TWIN = {**_MADE, "already_enqueued": True}


class EnqueuedJob(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """A job as it was made, or as the one that holds its unique key is."""

    id = serializers.UUIDField()
    url = serializers.CharField(help_text="Where it can be followed.")
    task = serializers.CharField()
    queue_name = serializers.CharField()
    priority = serializers.IntegerField()
    state = serializers.ChoiceField(choices=[state.value for state in State])
    enqueued_at = serializers.DateTimeField()
    run_at = serializers.DateTimeField(help_text="When it may start.")
    expires_at = serializers.DateTimeField(allow_null=True, help_text="When it may no more.")
    tags = serializers.ListField(child=serializers.CharField())
    already_enqueued = serializers.BooleanField(
        help_text="No job was made: this one holds the unique key."
    )


class Outcome(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """What became of one job of a batch."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=[state.value for state in State])
    already_enqueued = serializers.BooleanField()


class EnqueuedBatch(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """What became of each job, in the order of the request."""

    jobs = Outcome(many=True)


_LOCATION = OpenApiParameter(
    "Location",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Where the job can be followed.",
    response=[200, 201],
)

_TWINS = OpenApiExample(
    "its unique key is held", value=_TWIN, response_only=True, status_codes=["200"]
)

job_document = extend_schema(
    parameters=[KEY, REPLAYED, _LOCATION],
    responses={201: EnqueuedJob, 200: EnqueuedJob},
    examples=[
        OpenApiExample("in 15 minutes", value=_JOB, request_only=True),
        OpenApiExample("made", value=_MADE, response_only=True, status_codes=["201"]),
        _TWINS,
    ],
)
batch_document = extend_schema(
    parameters=[KEY, REPLAYED],
    responses={201: EnqueuedBatch, 200: EnqueuedBatch},
    examples=[
        OpenApiExample("one job", value={"jobs": [_JOB]}, request_only=True),
        OpenApiExample(
            "made",
            value={"jobs": [{"id": _ID, "state": "scheduled", "already_enqueued": False}]},
            response_only=True,
            status_codes=["201"],
        ),
        OpenApiExample(
            "all their unique keys are held",
            value={"jobs": [{"id": _ID, "state": "ready", "already_enqueued": True}]},
            response_only=True,
            status_codes=["200"],
        ),
    ],
)
