"""The views of schedules. `jobqueue.control` decides; versions travel as ETag and If-Match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import needs
from jobqueue.api.answers import conditional, require_match, versioned
from jobqueue.api.documents import Document
from jobqueue.api.inputs import NOTHING, Nothing
from jobqueue.api.problems import Problem
from jobqueue.api.repeating import (
    KEY,
    KEY_PROBLEMS,
    REPLAYED,
    request_key,
    response_of,
    stored_answer,
)
from jobqueue.api.resources.jobs.one import IF_MATCH, IF_NONE_MATCH
from jobqueue.api.resources.schedules import examples
from jobqueue.api.resources.schedules.documents import (
    PastTickDocument,
    PlanPreview,
    ScheduleDocument,
    past_tick,
    preview_document,
    schedule_document,
)
from jobqueue.api.resources.schedules.inputs import (
    PreviewInput,
    ScheduleChange,
    ScheduleInput,
    SwitchInput,
)
from jobqueue.api.views import ApiView
from jobqueue.declarations import declaration
from jobqueue.engine.schedule_status import history
from jobqueue.exceptions import ScheduleChanged, ScheduleNotFound
from jobqueue.models import Schedule
from jobqueue.permissions import VIEW

REFUSALS = ("invalid-schedule", "task-not-exposed", "row-locked", "invalid-argument")
NOT_ITS_PLAN = ("declared-in-code", "schedule-not-found", "row-locked")


class ScheduleList(Document):
    """The schedules, by name."""

    results = ScheduleDocument(many=True)


class TickList(Document):
    """The last ticks of a schedule, the newest first."""

    results = PastTickDocument(many=True)


class Started(Document):
    """The job that was made, or why none was."""

    job_id = serializers.UUIDField(allow_null=True)
    outcome = serializers.CharField()


class _Schedules(ApiView):
    """What all views of schedules share."""

    def row(self, schedule_id: int) -> Schedule:
        """Return a schedule. Raise Problem if there is none."""
        found = Schedule.objects.using(self.database).filter(pk=schedule_id).first()
        if found is None:
            raise Problem("schedule-not-found")
        return found

    def answer(self, request: Request, name: str, status: int = 200) -> HttpResponse:
        """Return a schedule as it is now."""
        found = control.schedules(self.backend, name=name)
        if not found:
            raise Problem("schedule-not-found")
        document = schedule_document(found[0], self.caller)
        etag = versioned(found[0].schedule.version, document)
        return conditional(request, document, etag=etag, status=status)


class SchedulesView(_Schedules):
    """All schedules."""

    @extend_schema(
        responses={200: ScheduleList, 304: None},
        parameters=[IF_NONE_MATCH],
        examples=[OpenApiExample("one schedule", value={"results": [examples.SCHEDULE]})],
    )
    @needs(VIEW)
    def get(self, request: Request) -> HttpResponse:
        """List the schedules, with their next ticks and what came of the last."""
        found = control.schedules(self.backend)
        return conditional(request, {"results": [schedule_document(s, self.caller) for s in found]})

    @extend_schema(
        responses={201: ScheduleDocument},
        examples=[
            OpenApiExample("every night", value=examples.NEW, request_only=True),
            OpenApiExample(
                "made", value=examples.SCHEDULE, response_only=True, status_codes=["201"]
            ),
        ],
    )
    @needs("create_schedule", body=ScheduleInput, problems=REFUSALS)
    def post(self, request: Request) -> HttpResponse:
        """Make a schedule of a task that is offered to HTTP clients.

        Its first tick is the first after now. A name that is taken is refused, so that repeating
        the request makes no second one.
        """
        given = dict(self.body)
        name = given.pop("name")
        row = control.create_schedule(name, self.caller.actor, backend=self.backend, **given)
        response = self.answer(request, name, status=201)
        response["Location"] = f"{request.path}{row.pk}/"
        return response


class PreviewView(_Schedules):
    """When a plan would tick."""

    @extend_schema(
        responses={200: PlanPreview},
        examples=[
            OpenApiExample(
                "every night",
                value={"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "count": 1},
                request_only=True,
            ),
            OpenApiExample("its next tick", value=examples.PREVIEW, response_only=True),
        ],
    )
    @needs(VIEW, body=PreviewInput, problems=("invalid-schedule",))
    def post(self, request: Request) -> HttpResponse:
        """Show when a plan would tick, and what is odd about it where clocks change."""
        given = dict(self.body)
        count = given.pop("count")
        one = declaration("preview", {"task": "no.task", **given})
        ticks = control.preview_schedule(one, count, backend=self.backend)
        return conditional(request, preview_document(one, ticks))


class ScheduleView(_Schedules):
    """One schedule."""

    @extend_schema(
        responses={200: ScheduleDocument, 304: None},
        parameters=[IF_NONE_MATCH],
        examples=[OpenApiExample("a schedule", value=examples.SCHEDULE)],
    )
    @needs(VIEW, problems=("schedule-not-found",))
    def get(self, request: Request, schedule_id: int) -> HttpResponse:
        """Show a schedule."""
        return self.answer(request, self.row(schedule_id).name)

    @extend_schema(
        responses={200: ScheduleDocument},
        parameters=[IF_MATCH],
        examples=[
            OpenApiExample("an hour later", value={"cron": "30 3 * * *"}, request_only=True),
            OpenApiExample("changed", value=examples.SCHEDULE, response_only=True),
        ],
    )
    @needs(
        "update_schedule",
        body=ScheduleChange,
        problems=(*REFUSALS, *NOT_ITS_PLAN, "precondition-failed", "invalid-header"),
    )
    def patch(self, request: Request, schedule_id: int) -> HttpResponse:
        """Change some of a schedule; a new plan counts from now.

        What is declared in code is changed there. The name stays.
        """
        given = self.body
        row = self.row(schedule_id)
        version = row.version if require_match(request, row.version) else None
        try:
            control.update_schedule(
                row.name, self.caller.actor, version=version, backend=self.backend, **given
            )
        except ScheduleChanged as error:
            raise Problem("precondition-failed", str(error)) from error
        return self.answer(request, row.name)

    @extend_schema(responses={204: None})
    @needs("delete_schedule", problems=NOT_ITS_PLAN)
    def delete(self, request: Request, schedule_id: int) -> HttpResponse:
        """Delete a schedule with the history of its ticks; its jobs stay."""
        control.delete_schedule(self.row(schedule_id).name, self.caller.actor, backend=self.backend)
        return HttpResponse(status=204)


class TicksView(_Schedules):
    """What came of the ticks of a schedule."""

    @extend_schema(
        responses={200: TickList, 304: None},
        examples=[OpenApiExample("one tick", value={"results": [examples.TICK]})],
    )
    @needs(VIEW, problems=("schedule-not-found",))
    def get(self, request: Request, schedule_id: int) -> HttpResponse:
        """List the last ticks of a schedule, the newest first."""
        found = history(self.row(schedule_id))
        return conditional(request, {"results": [past_tick(tick) for tick in found]})


class _SwitchView(_Schedules):
    """Enabling and disabling."""

    def switch(
        self, request: Request, schedule_id: int, do: Callable[..., Any], *given: str
    ) -> HttpResponse:
        """Switch a schedule, and answer with it."""
        name = self.row(schedule_id).name
        do(name, self.caller.actor, *given, backend=self.backend)
        return self.answer(request, name)


class EnableView(_SwitchView):
    """Enabling a schedule."""

    @extend_schema(
        responses={200: ScheduleDocument},
        examples=[
            NOTHING,
            OpenApiExample("enabled", value=examples.SCHEDULE, response_only=True),
        ],
    )
    @needs(
        "enable_schedule",
        body=Nothing,
        problems=("schedule-not-found", "invalid-schedule", "row-locked"),
    )
    def post(self, request: Request, schedule_id: int) -> HttpResponse:
        """Let a schedule tick again; its next tick is the first after now."""
        _ = self.body
        return self.switch(request, schedule_id, control.enable_schedule)


class DisableView(_SwitchView):
    """Disabling a schedule."""

    @extend_schema(
        responses={200: ScheduleDocument},
        examples=[
            OpenApiExample("why", value={"reason": "stocktaking"}, request_only=True),
            OpenApiExample(
                "disabled",
                value={**examples.SCHEDULE, "enabled": False, "state": "disabled"},
                response_only=True,
            ),
        ],
    )
    @needs("disable_schedule", body=SwitchInput, problems=("schedule-not-found", "row-locked"))
    def post(self, request: Request, schedule_id: int) -> HttpResponse:
        """Let a schedule tick no more, until it is enabled; its jobs go on."""
        return self.switch(request, schedule_id, control.disable_schedule, self.body["reason"])


class RunView(_Schedules):
    """Running a schedule now."""

    @extend_schema(
        parameters=[KEY, REPLAYED],
        responses={200: Started, 201: Started},
        examples=[
            NOTHING,
            OpenApiExample(
                "none was made",
                value={"job_id": None, "outcome": "skipped: an earlier run has not ended"},
                response_only=True,
                status_codes=["200"],
            ),
            OpenApiExample(
                "a job was made",
                value={"job_id": examples.TICK["job_id"], "outcome": "started"},
                response_only=True,
                status_codes=["201"],
            ),
        ],
    )
    @needs(
        "run_schedule",
        body=Nothing,
        problems=("schedule-not-found", "invalid-schedule", *KEY_PROBLEMS),
    )
    def post(self, request: Request, schedule_id: int) -> HttpResponse:
        """Make a job of a schedule now, also of one that is disabled; it stands for no tick.

        Its overlap policy holds: then none may be made (200).
        """
        _ = self.body
        key = request_key(self, "schedules/run", {"schedule": str(schedule_id)})
        row = Schedule.objects.using(self.database).filter(pk=schedule_id).first()
        name = "" if row is None else row.name  # gone by now, and perhaps run before
        try:
            given = control.run_schedule_once(
                name, self.caller.actor, _started, request=key, backend=self.backend
            )
        except ScheduleNotFound as error:
            raise Problem("schedule-not-found") from error
        return response_of(given)


def _started(outcome: control.Outcome) -> control.StoredAnswer:
    made = next(iter(outcome.results), None)
    document = {
        "job_id": None if made is None else str(made),
        "outcome": next(iter(outcome.counts)),
    }
    return stored_answer(200 if made is None else 201, document)
