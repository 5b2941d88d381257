"""``/stats/``: how many jobs there are, and what was done lately. Nothing counts a big table.

Counts say how they are meant (`relation`): exactly (eq), at least (gte), or about (estimate).
Jobs that have succeeded or were cancelled are not counted, as there may be millions. What was done
is read from rollups, which are some seconds old: `attempts.as_of` says as of when. What there is is
looked at once a second and process (`jobqueue.api.fresh`), however many ask.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api import fresh
from jobqueue.api.access import needs
from jobqueue.api.answers import conditional
from jobqueue.api.documents import (
    CountDocument,
    Document,
    count,
    counted,
    nullable_number,
    nullable_time,
)
from jobqueue.api.serializers import StrictSerializer
from jobqueue.api.values import moment, text
from jobqueue.api.views import ApiView
from jobqueue.conf import HOUR_ROLLUP_SECONDS
from jobqueue.permissions import VIEW

HOUR_SECONDS = 3_600.0


class PeriodQuery(StrictSerializer):
    """Over which time."""

    period = serializers.FloatField(
        required=False,
        default=HOUR_SECONDS,
        min_value=60,
        max_value=HOUR_ROLLUP_SECONDS,
        help_text="Seconds until now.",
    )


class SpreadDocument(Document):
    """How long it took, in seconds; null where nothing was measured."""

    count = serializers.IntegerField()
    mean = nullable_number()
    p50 = nullable_number()
    p95 = nullable_number()
    p99 = nullable_number()


class AttemptsDocument(Document):
    """The attempts that ended in the period."""

    as_of = nullable_time("Counted up to then; null: never.")
    period = serializers.FloatField()
    count = serializers.IntegerField()
    outcomes = serializers.DictField(child=serializers.IntegerField())
    per_minute = serializers.FloatField(help_text="Over the last whole minutes.")
    wait = SpreadDocument(help_text="From due to started.")
    run = SpreadDocument(help_text="From started to ended.")


class StatsDocument(Document):
    """What there is now, and what was done; ages in seconds, null where there is no such job."""

    as_of = serializers.DateTimeField()
    counts = counted("By state; those that are live, and dead.")
    blocked = counted("By reason.")
    unknown_tasks = counted("Blocked, by a task that no live worker knows.")
    backlog = CountDocument(help_text="Ready, in queues that are not paused.")
    oldest_ready_seconds = nullable_number()
    oldest_unpromoted_seconds = nullable_number("Due, and not made ready.")
    oldest_unreaped_seconds = nullable_number("Since a lease ran out, and jobs are still held.")
    workers = serializers.IntegerField(help_text="That are alive; 100 at most.")
    attempts = AttemptsDocument()


SPREAD = {"count": 14_400, "mean": 0.21, "p50": 0.1, "p95": 0.8, "p99": 2.5}
EXAMPLE = {
    "as_of": "2026-07-14T11:02:00Z",
    "counts": {
        "ready": {"value": 2_000_000, "relation": "estimate"},
        "running": {"value": 12, "relation": "eq"},
        "scheduled": {"value": 10_000, "relation": "gte"},
        "retrying": {"value": 31, "relation": "eq"},
        "blocked": {"value": 2, "relation": "eq"},
        "dead": {"value": 7, "relation": "eq"},
    },
    "blocked": {"limit": {"value": 2, "relation": "eq"}},
    "unknown_tasks": {},
    "backlog": {"value": 2_000_000, "relation": "estimate"},
    "oldest_ready_seconds": 312.5,
    "oldest_unpromoted_seconds": None,
    "oldest_unreaped_seconds": None,
    "workers": 3,
    "attempts": {
        "as_of": "2026-07-14T11:01:57Z",
        "period": 3_600.0,
        "count": 14_400,
        "outcomes": {"succeeded": 14_318, "failed": 82},
        "per_minute": 240.0,
        "wait": SPREAD,
        "run": SPREAD,
    },
}


def spread(of: Any) -> dict[str, Any]:
    """Return how long something took, as it is answered."""
    return {name: getattr(of, name) for name in ("count", "mean", "p50", "p95", "p99")}


class StatsView(ApiView):
    """What there is, and what was done."""

    @extend_schema(
        responses={200: StatsDocument, 304: None},
        examples=[OpenApiExample("a busy hour", value=EXAMPLE)],
    )
    @needs(VIEW, query=PeriodQuery)
    def get(self, request: Request) -> HttpResponse:
        """Tell how many jobs there are, how old the oldest, and what was done lately.

        Counted at most a second ago: `as_of` says when.
        """
        status = fresh.status.of(self.backend)
        document = {
            "as_of": moment(status.as_of),
            "counts": {name: count(of) for name, of in status.counts.items()},
            "blocked": {text(name): count(of) for name, of in status.blocked.items()},
            "unknown_tasks": {text(name): count(of) for name, of in status.unknown_tasks.items()},
            "backlog": count(status.backlog),
            "oldest_ready_seconds": status.oldest_ready,
            "oldest_unpromoted_seconds": status.oldest_unpromoted,
            "oldest_unreaped_seconds": status.oldest_unreaped,
            "workers": sum(worker.kind == "worker" for worker in status.workers),
            "attempts": self._attempts(),
        }
        return conditional(request, document)

    def _attempts(self) -> dict[str, Any]:
        period = self.query["period"]
        totals = control.statistics.totals(period, backend=self.backend)
        return {
            "as_of": moment(totals.as_of),
            "period": period,
            "count": totals.attempts,
            "outcomes": totals.outcomes,
            "per_minute": totals.per_minute,
            "wait": spread(totals.wait),
            "run": spread(totals.run),
        }


routes = [path("stats/", StatsView.as_view(), name="stats")]
