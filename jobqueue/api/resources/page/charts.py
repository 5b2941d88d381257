"""``/page/throughput/ latency/ errors/``: what was done, how long it took, and what failed.

All is read from rollups: some thousand small rows at most, however many jobs there were. Series
have one number for each of `starts`; the first step is whole, the last still open.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import needs
from jobqueue.api.answers import conditional
from jobqueue.api.caller import Caller
from jobqueue.api.documents import CountDocument, Document, count, nullable_time
from jobqueue.api.problems import Problem
from jobqueue.api.resources.jobs.fields import Text
from jobqueue.api.resources.statistics import SPREAD, PeriodQuery, SpreadDocument, spread
from jobqueue.api.values import moment, shown, text
from jobqueue.api.views import ApiView
from jobqueue.disclosure import shown_error
from jobqueue.engine.error_groups import MAX_GROUPS
from jobqueue.permissions import VIEW

STARTS = ["2026-07-14T11:00:00Z", "2026-07-14T11:01:00Z"]


class SeriesDocument(Document):
    """Steps of a period."""

    as_of = nullable_time("Counted up to then; null: never.")
    step_seconds = serializers.IntegerField()
    starts = serializers.ListField(child=serializers.DateTimeField())


# --- throughput -----------------------------------------------------------------------------------


class SeriesLine(Document):
    """Attempts that ended, by step."""

    name = serializers.CharField(help_text="An outcome, queue or task, or a worker's identity.")
    counts = serializers.ListField(child=serializers.IntegerField())


class ThroughputDocument(SeriesDocument):
    """How much was done."""

    lines = SeriesLine(many=True)
    others = serializers.IntegerField(help_text="Names that were not busy enough to be listed.")


class ThroughputQuery(PeriodQuery):
    """Over which time, and by what."""

    by = serializers.ChoiceField(
        choices=["outcome", "queue", "task", "worker"], required=False, default="outcome"
    )


class ThroughputView(ApiView):
    """How much was done."""

    @extend_schema(
        responses={200: ThroughputDocument, 304: None},
        examples=[
            OpenApiExample(
                "by outcome",
                value={
                    "as_of": "2026-07-14T11:01:57Z",
                    "step_seconds": 60,
                    "starts": STARTS,
                    "lines": [{"name": "succeeded", "counts": [240, 221]}],
                    "others": 0,
                },
            )
        ],
    )
    @needs(VIEW, query=ThroughputQuery)
    def get(self, request: Request) -> HttpResponse:
        """Tell how many attempts ended in each step of a period: the busiest twenty lines."""
        found = control.statistics.throughput(
            self.query["period"], self.query["by"], backend=self.backend
        )
        return conditional(
            request,
            {
                **series(found),
                "lines": [
                    {"name": text(line.name), "counts": list(line.counts)} for line in found.lines
                ],
                "others": found.others,
            },
        )


# --- latency --------------------------------------------------------------------------------------


class LatencyLine(Document):
    """How long the attempts of a queue or task waited and ran."""

    name = serializers.CharField()
    attempts = serializers.IntegerField()
    failed = serializers.IntegerField()
    wait = SpreadDocument()
    run = SpreadDocument()


class LatencyDocument(SeriesDocument):
    """How long it took: in each step, and for each of the busiest queues or tasks."""

    waits = SpreadDocument(many=True)
    runs = SpreadDocument(many=True)
    lines = LatencyLine(many=True)


class LatencyQuery(PeriodQuery):
    """Over which time, of what the steps are, and by what the lines."""

    by = serializers.ChoiceField(choices=["queue", "task"], required=False, default="queue")
    queue = Text(required=False, max_length=255, help_text="Steps of this queue only.")
    task = Text(required=False, max_length=255, help_text="Steps of this task only.")


class LatencyView(ApiView):
    """How long it took."""

    @extend_schema(
        responses={200: LatencyDocument, 304: None},
        examples=[
            OpenApiExample(
                "all queues",
                value={
                    "as_of": "2026-07-14T11:01:57Z",
                    "step_seconds": 60,
                    "starts": STARTS,
                    "waits": [SPREAD, SPREAD],
                    "runs": [SPREAD, SPREAD],
                    "lines": [
                        {
                            "name": "mail",
                            "attempts": 14_400,
                            "failed": 82,
                            "wait": SPREAD,
                            "run": SPREAD,
                        }
                    ],
                },
            )
        ],
    )
    @needs(VIEW, query=LatencyQuery)
    def get(self, request: Request) -> HttpResponse:
        """Tell how long attempts waited from due to started, and ran, in seconds."""
        query, backend = self.query, self.backend
        period = query["period"]
        steps = control.statistics.latency_series(
            period, queue=query.get("queue"), task=query.get("task"), backend=backend
        )
        lines = control.statistics.latency(period, query["by"], backend=backend)
        return conditional(
            request,
            {
                **series(steps),
                "waits": [spread(one) for one in steps.waits],
                "runs": [spread(one) for one in steps.runs],
                "lines": [
                    {
                        "name": text(line.name),
                        "attempts": line.attempts,
                        "failed": line.failed,
                        "wait": spread(line.wait),
                        "run": spread(line.run),
                    }
                    for line in lines
                ],
            },
        )


# --- errors ---------------------------------------------------------------------------------------


class ErrorGroupDocument(Document):
    """Errors that are alike but for numbers, ids and quoted text."""

    fingerprint = serializers.CharField()
    error_class = serializers.CharField()
    message = serializers.CharField(allow_blank=True, help_text="Without what differs.")
    count = serializers.IntegerField(help_text="Attempts in the period.")
    counts = serializers.ListField(child=serializers.IntegerField())
    total = serializers.IntegerField(help_text="Attempts since it was first seen.")
    first_seen = serializers.DateTimeField()
    last_seen = serializers.DateTimeField()
    dead = CountDocument(help_text="Dead letters that a requeue of the group would take.")
    job_id = serializers.UUIDField(help_text="The newest job that it happened to.")
    task = serializers.CharField(help_text="Of that job.")
    queue_name = serializers.CharField(help_text="Of that job.")


class ErrorGroupList(SeriesDocument):
    """The groups of a period."""

    results = ErrorGroupDocument(many=True)


class ErrorsQuery(PeriodQuery):
    """Over which time, in which order, and how many."""

    order = serializers.ChoiceField(
        choices=["last_seen", "count"], required=False, default="last_seen"
    )
    limit = serializers.IntegerField(required=False, default=20, min_value=1, max_value=MAX_GROUPS)


ERRORS = {
    "as_of": "2026-07-14T11:01:57Z",
    "step_seconds": 60,
    "starts": STARTS,
    "results": [
        {
            "fingerprint": "5f1d0c6a9be24d7f8a63f0b7d1c2e394",
            "error_class": "smtplib.SMTPServerDisconnected",
            "message": "Connection unexpectedly closed",
            "count": 3,
            "counts": [2, 1],
            "total": 82,
            "first_seen": "2026-07-13T18:20:00Z",
            "last_seen": "2026-07-14T11:01:40Z",
            "dead": {"value": 7, "relation": "eq"},
            "job_id": "01980a5d-ac96-774b-8cce-b302099a8057",
            "task": "shop.tasks.send_receipt",
            "queue_name": "mail",
        }
    ],
}


class ErrorsView(ApiView):
    """What fails."""

    @extend_schema(
        responses={200: ErrorGroupList, 304: None},
        examples=[OpenApiExample("one group", value=ERRORS)],
    )
    @needs(VIEW, query=ErrorsQuery)
    def get(self, request: Request) -> HttpResponse:
        """List groups of errors that are alike, those seen last or most often first."""
        query = self.query
        found = control.statistics.error_groups(
            query["period"], query["order"], limit=query["limit"], backend=self.backend
        )
        return conditional(request, _groups(found, self.caller))


class ErrorView(ApiView):
    """One group of errors."""

    @extend_schema(
        responses={200: ErrorGroupList, 304: None},
        examples=[OpenApiExample("a group", value=ERRORS)],
    )
    @needs(VIEW, query=PeriodQuery)
    def get(self, request: Request, fingerprint: str) -> HttpResponse:
        """Show one group of errors, and its course."""
        found = control.statistics.error_group(
            fingerprint[:32], self.query["period"], backend=self.backend
        )
        if not found.groups:
            raise Problem("not-found")
        return conditional(request, _groups(found, self.caller))


def _groups(found: Any, caller: Caller) -> dict[str, Any]:
    return {**series(found), "results": [_group(line, caller) for line in found.groups]}


def _group(line: Any, caller: Caller) -> dict[str, Any]:
    return {
        "fingerprint": line.fingerprint,
        "error_class": text(line.error_class),
        "message": text(
            shown_error(line.message, task=line.task, may_see_payload=caller.sees_payload)
        ),
        "count": line.count,
        "counts": list(line.counts),
        "total": shown(line.total),
        "first_seen": moment(line.first_seen),
        "last_seen": moment(line.last_seen),
        "dead": count(line.dead),
        "job_id": str(line.job_id),
        "task": text(line.task),
        "queue_name": text(line.queue),
    }


def series(found: Any) -> dict[str, Any]:
    """Return the steps of a series as they are answered."""
    return {
        "as_of": moment(found.as_of),
        "step_seconds": found.step_seconds,
        "starts": [moment(start) for start in found.starts],
    }
