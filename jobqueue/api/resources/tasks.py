"""``/tasks/``: what this caller may enqueue."""

from __future__ import annotations

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobqueue.api.access import SIGNED_IN, needs
from jobqueue.api.caller import SURFACE
from jobqueue.api.views import ApiView
from jobqueue.engine.making import EXPOSURE
from jobqueue.engine.registry import registry


class TaskDocument(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """One task that may be enqueued."""

    name = serializers.CharField()
    description = serializers.CharField()
    queue_name = serializers.CharField()
    priority = serializers.IntegerField()


class TaskList(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """The tasks that may be enqueued, by name."""

    tasks = TaskDocument(many=True)


class TasksView(ApiView):
    """What this caller may enqueue, with a schema of the arguments."""

    @extend_schema(
        responses={200: TaskList},
        examples=[
            OpenApiExample(
                "one task",
                value={
                    "tasks": [
                        {
                            "name": "shop.tasks.send_receipt",
                            "description": "Mail the receipt of an order.",
                            "queue_name": "mail",
                            "priority": 0,
                        }
                    ]
                },
            )
        ],
    )
    @needs(SIGNED_IN)
    def get(self, request: Request) -> Response:
        """List the tasks that are exposed to the API; none without the permission to enqueue."""
        offered: list[dict[str, Any]] = [
            {
                "name": task.module_path,
                "description": (task.func.__doc__ or "").strip().split("\n")[0],
                "queue_name": task.queue_name,
                "priority": task.priority,
            }
            for task in registry
            if EXPOSURE[SURFACE] in task.expose and self.caller.may("enqueue")
        ]
        return Response({"tasks": sorted(offered, key=lambda task: task["name"])})


routes = [path("tasks/", TasksView.as_view(), name="tasks")]
