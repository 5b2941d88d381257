"""``/tasks/``: what this caller may enqueue."""

from __future__ import annotations

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobqueue import control
from jobqueue.api.access import SIGNED_IN, needs
from jobqueue.api.views import ApiView
from jobqueue.tasks import JobTask

EXAMPLE = {
    "tasks": [
        {
            "name": "shop.tasks.send_receipt",
            "description": "Mail the receipt of an order.",
            "queue_name": "mail",
            "priority": 0,
            "args": {
                "type": "array",
                "prefixItems": [{"title": "order_id", "type": "integer"}],
                "items": False,
            },
            "kwargs": {
                "type": "object",
                "properties": {"order_id": {"type": "integer"}},
                "additionalProperties": False,
                "required": ["order_id"],
            },
        }
    ]
}


class TaskDocument(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """One task that may be enqueued."""

    name = serializers.CharField(help_text="What `task` of a job says.")
    description = serializers.CharField(allow_blank=True)
    queue_name = serializers.CharField(help_text="Where its jobs go unless they say otherwise.")
    priority = serializers.IntegerField()
    args = serializers.JSONField(help_text="JSON Schema of the arguments by place.")
    kwargs = serializers.JSONField(
        help_text="JSON Schema of the arguments by name. What is `required` may come in either."
    )


class TaskList(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """The tasks that may be enqueued, by name."""

    tasks = TaskDocument(many=True)


class TasksView(ApiView):
    """What this caller may enqueue, with a schema of the arguments."""

    @extend_schema(responses={200: TaskList}, examples=[OpenApiExample("one task", value=EXAMPLE)])
    @needs(SIGNED_IN)
    def get(self, request: Request) -> Response:
        """List the tasks that may be enqueued.

        Those that are exposed to the API (to staff, for staff with a session), with a schema of
        their arguments; none for a caller who may not enqueue.
        """
        offered = control.exposed_tasks(self.caller.surface) if self.caller.may("enqueue") else []
        return Response({"tasks": [_document(task) for task in offered]})


def _document(task: JobTask[..., Any]) -> dict[str, Any]:
    return {
        "name": task.module_path,
        "description": " ".join((task.func.__doc__ or "").strip().split("\n\n")[0].split()),
        "queue_name": task.queue_name,
        "priority": task.priority,
        **control.schema_of(task),
    }


routes = [path("tasks/", TasksView.as_view(), name="tasks")]
