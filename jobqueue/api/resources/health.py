"""``/health/live/`` and ``/health/ready/``: probes, for whoever starts and watches processes.

Both answer without credentials, and then say no more than "pass" or "fail". Whoever may see jobs
is told which check failed, and the ages.

Live asks nothing but this process. Ready asks the database, at most once a second for all who
probe this process (`jobqueue.api.fresh`): is there a worker, are due jobs made ready, are those of
dead workers taken back, and, with ``?max_age=60``, has no ready job waited for longer. It is a
probe of the queue as a whole: a load balancer that takes web servers out for it would take out
those that could still accept jobs.
"""

from __future__ import annotations

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobqueue import control
from jobqueue.api import fresh
from jobqueue.api.access import OPEN, needs
from jobqueue.api.serializers import StrictSerializer
from jobqueue.api.views import ApiView
from jobqueue.permissions import VIEW


class ReadyQuery(StrictSerializer):
    """What a probe may ask."""

    max_age = serializers.FloatField(
        required=False,
        min_value=0,
        max_value=31 * 86_400,
        help_text="Seconds that a ready job in a queue that is not paused may have waited.",
    )


class Live(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """What a probe is told."""

    status = serializers.ChoiceField(choices=["pass", "fail"])


class Check(Live):
    """One check; value: how many workers, or an age in seconds, null where there is no such job."""

    value = serializers.FloatField(allow_null=True)


class Checks(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """What is looked at."""

    workers = Check()
    unpromoted = Check()
    unreaped = Check()
    ready = Check()


class Ready(Live):
    """What a probe is told; the checks only to whoever may see jobs."""

    checks = Checks(required=False)


READY_EXAMPLES = [
    OpenApiExample(
        "to anybody", value={"status": "pass"}, response_only=True, status_codes=["200"]
    ),
    OpenApiExample(
        "to whoever may view jobs",
        value={
            "status": "fail",
            "checks": {
                "workers": {"status": "fail", "value": 0},
                "unpromoted": {"status": "pass", "value": None},
                "unreaped": {"status": "pass", "value": None},
                "ready": {"status": "pass", "value": 12.5},
            },
        },
        response_only=True,
        status_codes=["503"],
    ),
]


class LiveView(ApiView):
    """Whether this process answers."""

    @extend_schema(
        responses={200: Live}, examples=[OpenApiExample("alive", value={"status": "pass"})]
    )
    @needs(OPEN)
    def get(self, request: Request) -> Response:
        """Ask whether this process answers.

        Nothing else is asked, not even the database.
        """
        return Response({"status": "pass"})


class ReadyView(ApiView):
    """Whether jobs get done."""

    @extend_schema(responses={200: Ready, 503: Ready}, examples=READY_EXAMPLES)
    @needs(OPEN, query=ReadyQuery)
    def get(self, request: Request) -> Response:
        """Ask whether jobs get done.

        200 if everything passes, else 503; with the checks to whoever may see jobs.
        """
        found = fresh.readiness.of(self.backend)
        failures = found.failures(self.query.get("max_age"))
        answer: dict[str, Any] = {"status": "fail" if failures else "pass"}
        if self.caller.may(VIEW):
            answer["checks"] = _checks(found, failures)
        response = Response(answer, status=503 if failures else 200)
        response["Cache-Control"] = "no-store"
        response._has_been_logged = True  # a probe that fails is no error of this process
        return response


def _checks(found: control.Readiness, failures: list[str]) -> dict[str, dict[str, Any]]:
    values = {
        "workers": found.workers,
        "unpromoted": found.oldest_unpromoted,
        "unreaped": found.oldest_unreaped,
        "ready": found.oldest_ready,
    }
    return {
        name: {"status": "fail" if name in failures else "pass", "value": value}
        for name, value in values.items()
    }


routes = [
    path("health/live/", LiveView.as_view(), name="health-live"),
    path("health/ready/", ReadyView.as_view(), name="health-ready"),
]
