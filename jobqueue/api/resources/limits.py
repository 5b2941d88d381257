"""``/limits/``: how many jobs of a key or queue run at once and start in a period.

A key is the name of a limit (all of its keys have these numbers), one key of it (``customer:42``),
or ``queue:NAME``.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import needs
from jobqueue.api.answers import conditional
from jobqueue.api.documents import Document, nullable_number, nullable_time
from jobqueue.api.inputs import Number
from jobqueue.api.problems import Problem
from jobqueue.api.resources.jobs.fields import Text, Whole
from jobqueue.api.resources.queue_names import require_queue
from jobqueue.api.serializers import StrictSerializer
from jobqueue.api.values import moment, text
from jobqueue.api.views import ApiView
from jobqueue.conf import DAY_SECONDS
from jobqueue.engine.queues import MAX_REASON_LENGTH
from jobqueue.limits import QUEUE
from jobqueue.permissions import VIEW

MAX_COUNT = 1_000_000_000


class NumbersDocument(Document):
    """The numbers of a limit; null: no such bound."""

    running = serializers.IntegerField(allow_null=True, help_text="At once.")
    rate = serializers.IntegerField(allow_null=True, help_text="Starts in `per` seconds.")
    per = nullable_number()


class LimitDocument(NumbersDocument):
    """One limit, and what is under it now."""

    key = serializers.CharField()
    code = NumbersDocument(allow_null=True, help_text="What the code says; null: nothing.")
    set_by = serializers.CharField(allow_blank=True, help_text='"": the numbers of the code hold.')
    set_at = nullable_time()
    reason = serializers.CharField(allow_blank=True)
    running_now = serializers.IntegerField()
    blocked_now = serializers.IntegerField()


class LimitList(Document):
    """The limits that anybody has set or the code says, by key."""

    results = LimitDocument(many=True)


class Numbers(StrictSerializer):
    """The numbers that hold from now on; without any the limit is lifted."""

    running = Whole(required=False, allow_null=True, default=None, min_value=0, max_value=MAX_COUNT)
    rate = Whole(required=False, allow_null=True, default=None, min_value=1, max_value=MAX_COUNT)
    per = Number(
        required=False, allow_null=True, default=None, min_value=0.001, max_value=31 * DAY_SECONDS
    )


class LimitChange(Numbers):
    """Numbers, and why."""

    reason = Text(required=False, allow_blank=True, default="", max_length=MAX_REASON_LENGTH)


LIMIT_EXAMPLE = {
    "key": "queue:mail",
    "running": 5,
    "rate": None,
    "per": None,
    "code": None,
    "set_by": "kim",
    "set_at": "2026-07-14T11:02:00Z",
    "reason": "the mail server is slow",
    "running_now": 5,
    "blocked_now": 0,
}


def numbers(given: tuple[int | None, int | None, float | None] | None) -> dict[str, Any] | None:
    """Return the numbers of a limit as they are answered."""
    return None if given is None else dict(zip(("running", "rate", "per"), given, strict=True))


def document_of(limit: control.LimitStatus) -> dict[str, Any]:
    """Return a limit as it is answered."""
    return {
        "key": text(limit.key),
        "running": limit.running,
        "rate": limit.rate,
        "per": limit.per,
        "code": numbers(limit.code),
        "set_by": text(limit.set_by),
        "set_at": moment(limit.set_at),
        "reason": text(limit.reason),
        "running_now": limit.running_now,
        "blocked_now": limit.blocked_now,
    }


class LimitsView(ApiView):
    """All limits."""

    @extend_schema(
        responses={200: LimitList, 304: None},
        examples=[OpenApiExample("one limit", value={"results": [LIMIT_EXAMPLE]})],
    )
    @needs(VIEW)
    def get(self, request: Request) -> HttpResponse:
        """List the limits, with how many jobs run and wait under each."""
        found = [document_of(limit) for limit in control.limits(self.backend)]
        return conditional(request, {"results": found})


class LimitView(ApiView):
    """One limit."""

    @extend_schema(
        responses={200: LimitDocument},
        examples=[
            OpenApiExample(
                "five at once",
                value={"running": 5, "reason": "the mail server is slow"},
                request_only=True,
            ),
            OpenApiExample("the limit", value=LIMIT_EXAMPLE, response_only=True),
        ],
    )
    @needs("set_limit", body=LimitChange, problems=("invalid-argument", "row-locked"))
    def put(self, request: Request, key: str) -> HttpResponse:
        """Set the numbers of a limit, whatever the code says; without numbers, lift it."""
        given = dict(self.body)
        if key.startswith(f"{QUEUE}:"):
            require_queue(key.removeprefix(f"{QUEUE}:"), self.backend)
        actor, backend = self.caller.actor, self.backend
        if given["running"] is None and given["rate"] is None and given["per"] is None:
            control.lift_limit(key, actor, reason=given["reason"], backend=backend)
        else:
            control.set_limit(key, actor, backend=backend, **given)
        return conditional(request, self._document(key))

    @extend_schema(responses={204: None})
    @needs("reset_limit", problems=("invalid-argument", "row-locked"))
    def delete(self, request: Request, key: str) -> HttpResponse:
        """Let the numbers of the code hold again."""
        control.reset_limit(key, self.caller.actor, backend=self.backend)
        return HttpResponse(status=204)

    def _document(self, key: str) -> dict[str, Any]:
        found = control.limits(self.backend, keys=[key])
        if not found:
            raise Problem("not-found")
        return document_of(found[0])


routes = [
    path("limits/", LimitsView.as_view(), name="limits"),
    path("limits/<path:key>/", LimitView.as_view(), name="limit"),
]
