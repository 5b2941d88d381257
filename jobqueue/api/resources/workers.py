"""``/workers/``: the processes that run jobs and watch over them; each can be drained."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Count
from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import needs
from jobqueue.api.answers import conditional
from jobqueue.api.documents import Document
from jobqueue.api.inputs import NOTHING, Nothing
from jobqueue.api.problems import Problem
from jobqueue.api.values import moment, shown, text
from jobqueue.api.views import ApiView
from jobqueue.exceptions import WrongState
from jobqueue.models import Job
from jobqueue.permissions import VIEW
from jobqueue.states import State


class WorkerDocument(Document):
    """One process that is not dead. Rates are of the last whole minutes."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=["worker", "supervisor", "scheduler", "reaper"])
    name = serializers.CharField()
    host = serializers.CharField()
    pid = serializers.IntegerField()
    version = serializers.CharField(allow_blank=True)
    queues = serializers.ListField(child=serializers.CharField(), help_text="Empty: every queue.")
    slots = serializers.IntegerField()
    running = serializers.IntegerField(help_text="Jobs that it holds.")
    started_at = serializers.DateTimeField()
    heartbeat_seconds = serializers.FloatField(help_text="Since its last beat.")
    is_expired = serializers.BooleanField(help_text="Its lease ran out; nobody has noticed yet.")
    draining = serializers.BooleanField()
    per_minute = serializers.FloatField()
    failed_per_minute = serializers.FloatField()


class DeadWorkerDocument(Document):
    """One process that died within the last hour."""

    id = serializers.UUIDField()
    kind = serializers.CharField()
    name = serializers.CharField()
    host = serializers.CharField()
    pid = serializers.IntegerField()
    started_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField(help_text="Its last heartbeat.")
    died_at = serializers.DateTimeField(help_text="When it was declared dead, or had stopped.")
    dead_seconds = serializers.FloatField(help_text="Since then, as of this answer.")
    reason = serializers.CharField(allow_blank=True)


class WorkerList(Document):
    """The processes; at most a hundred of each."""

    results = WorkerDocument(many=True)
    dead = DeadWorkerDocument(many=True)


class Drained(Document):
    """What a worker was told."""

    id = serializers.UUIDField()
    draining = serializers.BooleanField()


WORKER_ID = "3b0c6f0e-7a53-4c0b-9a67-2f8d5a0d9a11"
EXAMPLE = {
    "results": [
        {
            "id": WORKER_ID,
            "kind": "worker",
            "name": "mail-1",
            "host": "shop-7",
            "pid": 4711,
            "version": "0.1.0",
            "queues": ["mail"],
            "slots": 4,
            "running": 3,
            "started_at": "2026-07-14T06:00:00Z",
            "heartbeat_seconds": 1.2,
            "is_expired": False,
            "draining": False,
            "per_minute": 240.0,
            "failed_per_minute": 1.4,
        }
    ],
    "dead": [
        {
            "id": "b17a3a7e-0f5a-4a53-8d43-0c2f3a1f5d22",
            "kind": "worker",
            "name": "mail-1",
            "host": "shop-7",
            "pid": 4702,
            "started_at": "2026-07-14T05:10:00Z",
            "seen_at": "2026-07-14T05:59:51Z",
            "died_at": "2026-07-14T05:59:59Z",
            "dead_seconds": 1_201.0,
            "reason": "lease ran out",
        }
    ],
}


class WorkersView(ApiView):
    """All workers."""

    @extend_schema(
        responses={200: WorkerList, 304: None},
        examples=[OpenApiExample("one alive, one dead", value=EXAMPLE)],
    )
    @needs(VIEW)
    def get(self, request: Request) -> HttpResponse:
        """List the processes that are alive, with what they do, and those that died lately."""
        alive, dead = control.workers(self.backend)
        rates = {r.worker: r for r in control.statistics.worker_rates(backend=self.backend)}
        running = self._running()
        document = {
            "results": [_alive(w, rates.get(w.id), running.get(w.id, 0)) for w in alive],
            "dead": [_dead(w) for w in dead],
        }
        return conditional(request, document)

    def _running(self) -> dict[UUID, int]:
        jobs = Job.objects.using(self.database).filter(state=State.RUNNING)
        counted = jobs.order_by().values_list("worker").annotate(count=Count("id"))
        return {worker: count for worker, count in counted if worker is not None}


def _alive(worker: Any, rate: Any, running: int) -> dict[str, Any]:
    return {
        "id": str(worker.id),
        "kind": worker.kind,
        "name": text(worker.name),
        "host": text(worker.host),
        "pid": shown(worker.pid),
        "version": text(worker.version),
        "queues": shown(worker.queues) if isinstance(worker.queues, list) else [],
        "slots": worker.slots,
        "running": running,
        "started_at": moment(worker.started_at),
        "heartbeat_seconds": worker.heartbeat_seconds,
        "is_expired": worker.is_expired,
        "draining": worker.draining,
        "per_minute": rate.per_minute if rate else 0.0,
        "failed_per_minute": rate.failed_per_minute if rate else 0.0,
    }


def _dead(worker: Any) -> dict[str, Any]:
    return {
        "id": str(worker.id),
        "kind": worker.kind,
        "name": text(worker.name),
        "host": text(worker.host),
        "pid": shown(worker.pid),
        "started_at": moment(worker.started_at),
        "seen_at": moment(worker.seen_at),
        "died_at": moment(worker.died_at),
        "dead_seconds": worker.seconds,
        "reason": text(worker.reason),
    }


class DrainView(ApiView):
    """Draining a worker."""

    @extend_schema(
        responses={202: Drained},
        examples=[
            NOTHING,
            OpenApiExample(
                "told to drain",
                value={"id": WORKER_ID, "draining": True},
                response_only=True,
                status_codes=["202"],
            ),
        ],
    )
    @needs("drain_worker", body=Nothing, problems=("wrong-state", "row-locked"))
    def post(self, request: Request, worker_id: UUID) -> HttpResponse:
        """Let a worker end the jobs in hand, claim nothing more, and exit.

        It sees this within one heartbeat. Telling it twice changes nothing.
        """
        _ = self.body
        outcome = control.drain_worker(worker_id, self.caller.actor, backend=self.backend)
        what = outcome.results[worker_id]
        if what == "not found":
            raise Problem("not-found", "There is no such worker.")
        if what == "skipped: dead":
            raise WrongState("The worker is dead: it holds no jobs.", current_state="dead")
        return conditional(request, {"id": str(worker_id), "draining": True}, status=202)


routes = [
    path("workers/", WorkersView.as_view(), name="workers"),
    path("workers/<uuid:worker_id>/drain/", DrainView.as_view(), name="worker-drain"),
]
