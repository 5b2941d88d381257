"""``/queues/``: the named lanes; each can be paused, resumed and limited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import needs
from jobqueue.api.answers import conditional
from jobqueue.api.documents import (
    CountDocument,
    Document,
    count,
    nullable_number,
    nullable_time,
)
from jobqueue.api.inputs import Flag
from jobqueue.api.problems import Problem
from jobqueue.api.resources.jobs.fields import Text
from jobqueue.api.resources.limits import LimitDocument, Numbers, document_of
from jobqueue.api.resources.queue_names import require_queue
from jobqueue.api.serializers import StrictSerializer
from jobqueue.api.values import moment, shown, text
from jobqueue.api.views import ApiView
from jobqueue.engine.queues import MAX_REASON_LENGTH
from jobqueue.limits import QUEUE
from jobqueue.permissions import VIEW, permission_for

ACTIONS = ("pause", "resume", "set_limit")


class QueueDocument(Document):
    """One queue."""

    name = serializers.CharField()
    paused = serializers.BooleanField()
    paused_by = serializers.CharField(allow_blank=True)
    paused_at = nullable_time()
    paused_reason = serializers.CharField(allow_blank=True)
    ready = CountDocument()
    oldest_ready_seconds = nullable_number("null: no job is ready.")
    limit = LimitDocument(allow_null=True)
    allowed_actions = serializers.ListField(child=serializers.ChoiceField(choices=ACTIONS))


class QueueList(Document):
    """The queues that the settings name, that hold ready jobs, or that somebody touched."""

    results = QueueDocument(many=True)


class QueueChange(StrictSerializer):
    """What to change: all that is given, or nothing."""

    paused = Flag(required=False)
    limit = Numbers(required=False, allow_null=True, help_text="null: no limit.")
    reason = Text(required=False, allow_blank=True, default="", max_length=MAX_REASON_LENGTH)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse to change nothing, and a limit without numbers."""
        if "paused" not in attrs and "limit" not in attrs:
            raise serializers.ValidationError("give paused or limit")
        limit = attrs.get("limit")
        if limit is not None and limit["running"] is None and limit["rate"] is None:
            raise serializers.ValidationError({"limit": "give running, or rate and per, or null"})
        return attrs


EXAMPLE: dict[str, Any] = {
    "name": "mail",
    "paused": True,
    "paused_by": "kim",
    "paused_at": "2026-07-14T11:02:00Z",
    "paused_reason": "the mail server is replaced",
    "ready": {"value": 10_000, "relation": "gte"},
    "oldest_ready_seconds": 312.5,
    "limit": None,
    "allowed_actions": ["resume"],
}


class _Queues(ApiView):
    """What both views share."""

    def document(
        self, queue: control.QueueStatus, limits: Mapping[str, control.LimitStatus]
    ) -> dict[str, Any]:
        """Return a queue as it is answered."""
        limit = limits.get(f"{QUEUE}:{queue.name}")
        return {
            "name": text(queue.name),
            "paused": queue.paused,
            "paused_by": text(queue.paused_by),
            "paused_at": moment(queue.paused_at),
            "paused_reason": text(queue.paused_reason),
            "ready": count(queue.ready),
            "oldest_ready_seconds": shown(queue.oldest_ready_seconds),
            "limit": None if limit is None else document_of(limit),
            "allowed_actions": self._actions(queue),
        }

    def _actions(self, queue: control.QueueStatus) -> list[str]:
        switch = "resume" if queue.paused else "pause"
        return [name for name in (switch, "set_limit") if self.caller.may(name)]

    def limits(self, names: Iterable[str]) -> dict[str, control.LimitStatus]:
        """Return the limits of these queues, by key."""
        keys = [f"{QUEUE}:{name}" for name in names]
        return {limit.key: limit for limit in control.limits(self.backend, keys=keys)}


class QueuesView(_Queues):
    """All queues."""

    @extend_schema(
        responses={200: QueueList, 304: None},
        examples=[OpenApiExample("one queue", value={"results": [EXAMPLE]})],
    )
    @needs(VIEW)
    def get(self, request: Request) -> HttpResponse:
        """List the queues."""
        queues = control.queues(self.backend)
        limits = self.limits(queue.name for queue in queues)
        found = [self.document(queue, limits) for queue in queues]
        return conditional(request, {"results": found})


class QueueView(_Queues):
    """One queue."""

    @extend_schema(
        responses={200: QueueDocument, 304: None},
        examples=[OpenApiExample("a queue", value=EXAMPLE)],
    )
    @needs(VIEW)
    def get(self, request: Request, name: str) -> HttpResponse:
        """Show a queue."""
        return conditional(request, self._found(name))

    @extend_schema(
        responses={200: QueueDocument},
        examples=[
            OpenApiExample(
                "pause it",
                value={"paused": True, "reason": "the mail server is replaced"},
                request_only=True,
            ),
            OpenApiExample("paused", value=EXAMPLE, response_only=True),
        ],
    )
    @needs(
        VIEW,
        body=QueueChange,
        scope="operate",
        problems=("permission-denied", "invalid-argument", "row-locked"),
    )
    def patch(self, request: Request, name: str) -> HttpResponse:
        """Pause or resume a queue, and set its limit.

        To pause and resume needs `jobqueue.pause_queue`, to set the limit `jobqueue.change_limit`.
        Running jobs go on. Repeating it changes nothing more.
        """
        body = self.body
        self._require("pause", "paused" in body)
        self._require("set_limit", "limit" in body)
        require_queue(name, self.backend)
        control.edit_queue(
            name,
            self.caller.actor,
            paused=body.get("paused"),
            limit=body.get("limit", control.KEEP),
            reason=body["reason"],
            backend=self.backend,
        )
        return conditional(request, self._found(name))

    def _require(self, action: str, is_asked: bool) -> None:
        if is_asked and not self.caller.may(action):
            permission = permission_for(action)
            raise Problem(
                "permission-denied", f"This needs the permission {permission}.",
                permission=permission,
            )  # fmt: skip

    def _found(self, name: str) -> dict[str, Any]:
        for queue in control.queues(self.backend):
            if queue.name == name:
                return self.document(queue, self.limits([name]))
        require_queue(name, self.backend)
        return self.document(control.QueueStatus(name), self.limits([name]))


routes = [
    path("queues/", QueuesView.as_view(), name="queues"),
    path("queues/<path:name>/", QueueView.as_view(), name="queue"),
]
