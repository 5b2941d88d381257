"""``/page/filter/``: what may stand in the filter field, and what a filter means."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import needs
from jobqueue.api.answers import conditional
from jobqueue.api.documents import Document
from jobqueue.api.resources.jobs.choosing import check_filter
from jobqueue.api.resources.jobs.fields import Text
from jobqueue.api.serializers import StrictSerializer
from jobqueue.api.values import text
from jobqueue.api.views import ApiView
from jobqueue.engine.registry import registry
from jobqueue.filters import KEYS, STATE_GROUPS, parse, states_of
from jobqueue.permissions import VIEW
from jobqueue.states import State


class FilterQuery(StrictSerializer):
    """A filter to read."""

    q = Text(required=False, allow_blank=True, default="")


class KeyDocument(Document):
    """One key of the filter language."""

    name = serializers.CharField()
    meaning = serializers.CharField()
    example = serializers.CharField()
    operators = serializers.ListField(child=serializers.CharField())
    has_patterns = serializers.BooleanField(help_text="Values may begin or end with *.")


class FilterDocument(Document):
    """What a filter means, and what else may be in one."""

    canonical = serializers.CharField(allow_blank=True)
    states = serializers.ListField(child=serializers.CharField(), help_text="That it looks at.")
    keys = KeyDocument(many=True)
    state_values = serializers.ListField(child=serializers.CharField())
    queue_values = serializers.ListField(child=serializers.CharField())
    task_values = serializers.ListField(
        child=serializers.CharField(), help_text="Tasks that the process which answers knows."
    )


EXAMPLE = {
    "canonical": "state:dead queue:mail",
    "states": ["dead"],
    "keys": [
        {
            "name": "state",
            "meaning": "state, or live, waiting, finished, any",
            "example": "state:dead",
            "operators": [":"],
            "has_patterns": False,
        }
    ],
    "state_values": ["dead", "ready"],
    "queue_values": ["default", "mail"],
    "task_values": ["shop.tasks.send_receipt"],
}


class FilterView(ApiView):
    """What may stand in the filter field."""

    @extend_schema(
        responses={200: FilterDocument, 304: None},
        examples=[OpenApiExample("a filter", value=EXAMPLE)],
    )
    @needs(VIEW, query=FilterQuery, problems=("invalid-filter",))
    def get(self, request: Request) -> HttpResponse:
        """Tell what a filter means, or where it is wrong, and what may stand in one."""
        chosen = parse(self.query["q"])
        check_filter(chosen, self.caller)
        return conditional(
            request,
            {
                "canonical": text(str(chosen)),
                "states": sorted(states_of(chosen)),
                "keys": _keys(),
                "state_values": [*map(str, State), *STATE_GROUPS],
                "queue_values": [text(name) for name in control.known_queues(self.backend)],
                "task_values": sorted(text(task.module_path) for task in registry),
            },
        )


def _keys() -> list[dict[str, Any]]:
    return [
        {
            "name": key.name,
            "meaning": key.meaning,
            "example": key.example,
            "operators": list(key.operators),
            "has_patterns": key.has_patterns,
        }
        for key in KEYS.values()
    ]
