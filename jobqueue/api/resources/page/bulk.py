"""``/page/bulk/``: one verb for many jobs: what it would be about, start, watch, stop, resume.

It is carried out in the background by workers, job by job and by the rules for single jobs. It
needs the permission of its verb, to start, stop and resume it; and as it is about all jobs that
match, whoever made them, also the permission to view jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import needs
from jobqueue.api.answers import conditional
from jobqueue.api.documents import AnyJSON, Document, nullable_number, nullable_time
from jobqueue.api.inputs import NOTHING, Nothing
from jobqueue.api.paging import MAX_NUMBER, PageQuery, page_of
from jobqueue.api.problems import Problem
from jobqueue.api.resources.page.bulk_inputs import BulkInput, choice_of, parameters_of
from jobqueue.api.values import moment, shown, text
from jobqueue.api.views import ApiView
from jobqueue.disclosure import shown_error
from jobqueue.engine.bulk_plan import BULK_VERBS
from jobqueue.exceptions import WrongState
from jobqueue.filters import shown_filter
from jobqueue.models import BulkOperation, BulkState
from jobqueue.permissions import VIEW, permission_for

REFUSALS = ("permission-denied", "invalid-argument", "invalid-filter", "invalid-run-after",
            "invalid-parameters", "row-locked")  # fmt: skip
LOCKED_LISTED = 100


class BulkPreview(Document):
    """What an operation would be about."""

    verb = serializers.ChoiceField(choices=list(BULK_VERBS))
    filter = serializers.CharField(allow_blank=True, help_text="As it is understood.")
    count = serializers.IntegerField()
    count_is_capped = serializers.BooleanField(help_text="There are more.")
    by_state = serializers.DictField(child=serializers.IntegerField())
    by_queue = serializers.DictField(child=serializers.IntegerField(), help_text="The first ten.")
    by_task = serializers.DictField(child=serializers.IntegerField(), help_text="The first ten.")


class BulkDocument(Document):
    """One operation as it is now."""

    id = serializers.CharField()
    verb = serializers.ChoiceField(choices=list(BULK_VERBS))
    state = serializers.ChoiceField(choices=BulkState.values)
    filter = serializers.CharField(
        allow_blank=True,
        help_text="Blank: ids were given. Values that the caller may not see are hidden in it.",
    )
    parameters = serializers.DictField(child=AnyJSON())
    actor = serializers.CharField()
    surface = serializers.CharField()
    began_at = serializers.DateTimeField()
    stepped_at = serializers.DateTimeField()
    ended_at = nullable_time()
    total = serializers.IntegerField(help_text="Jobs that matched when it began.")
    total_is_capped = serializers.BooleanField(help_text="There were more.")
    seen = serializers.IntegerField(help_text="Jobs that have had their turn.")
    fraction = nullable_number("null: nobody has counted to the end.")
    counts = serializers.DictField(
        child=serializers.IntegerField(), help_text="By what happened to them."
    )
    locked = serializers.ListField(
        child=serializers.UUIDField(), help_text="Whose rows stayed locked: the first hundred."
    )
    error = serializers.CharField(allow_blank=True, help_text="Why the last step failed.")
    allowed_actions = serializers.ListField(
        child=serializers.ChoiceField(choices=["stop", "resume"])
    )


class BulkList(Document):
    """Operations, the newest first."""

    results = BulkDocument(many=True)
    next = serializers.CharField(allow_null=True, help_text="Address of the older ones.")


FILTER = "state:dead error:SMTPServerDisconnected"
PREVIEW = {
    "verb": "requeue",
    "filter": FILTER,
    "count": 312,
    "count_is_capped": False,
    "by_state": {"dead": 312},
    "by_queue": {"mail": 312},
    "by_task": {"shop.tasks.send_receipt": 312},
}
OPERATION = {
    "id": "17",
    "verb": "requeue",
    "state": "running",
    "filter": FILTER,
    "parameters": {"spread": 600.0},
    "actor": "kim",
    "surface": "api",
    "began_at": "2026-07-14T11:02:00Z",
    "stepped_at": "2026-07-14T11:02:01Z",
    "ended_at": None,
    "total": 312,
    "total_is_capped": False,
    "seen": 120,
    "fraction": 0.38,
    "counts": {"requeued": 118, "skipped: cancelled": 2},
    "locked": [],
    "error": "",
    "allowed_actions": ["stop"],
}


class _Bulk(ApiView):
    """What all views of bulk operations share."""

    def require(self, verb: str) -> None:
        """Raise Problem unless the caller may do `verb`."""
        if not self.caller.may(verb):
            permission = permission_for(verb)
            raise Problem(
                "permission-denied", f"This needs the permission {permission}.",
                permission=permission,
            )  # fmt: skip

    def find(self, operation_id: int) -> BulkOperation:
        """Return an operation. Raise Problem if there is none."""
        if operation_id > MAX_NUMBER:
            raise Problem("bulk-operation-not-found")
        return control.bulk_operation(operation_id, backend=self.backend)

    def document(self, operation: BulkOperation) -> dict[str, Any]:
        """Return an operation as it is answered."""
        left = operation.left if isinstance(operation.left, list) else []
        return {
            "id": str(operation.pk),
            "verb": operation.verb,
            "state": operation.state,
            "filter": text(shown_filter(operation.filter, self.caller.sees_payload)),
            "parameters": shown(operation.parameters),
            "actor": text(operation.actor),
            "surface": operation.surface,
            "began_at": moment(operation.began_at),
            "stepped_at": moment(operation.stepped_at),
            "ended_at": moment(operation.ended_at),
            "total": shown(operation.total),
            "total_is_capped": operation.total_is_capped,
            "seen": shown(operation.seen),
            "fraction": operation.fraction,
            "counts": shown(operation.counts),
            "locked": [str(UUID(job_id)) for job_id in left[:LOCKED_LISTED]],
            "error": text(
                shown_error(operation.error, task="", may_see_payload=self.caller.sees_payload)
            ),
            "allowed_actions": self._actions(operation),
        }

    def _actions(self, operation: BulkOperation) -> list[str]:
        if not self.caller.may(operation.verb) or operation.state == BulkState.FINISHED:
            return []
        return ["stop" if operation.is_running else "resume"]


class BulkListView(_Bulk):
    """All bulk operations."""

    @extend_schema(
        responses={200: BulkList, 304: None},
        examples=[OpenApiExample("a page", value={"results": [OPERATION], "next": None})],
    )
    @needs(VIEW, query=PageQuery)
    def get(self, request: Request) -> HttpResponse:
        """List bulk operations, the newest first."""
        rows = control.bulk_operations(backend=self.backend).defer("ids")
        return page_of(self, request, rows, "id", lambda found: list(map(self.document, found)))

    @extend_schema(
        responses={200: BulkPreview, 202: BulkDocument},
        examples=[
            OpenApiExample(
                "spread over ten minutes",
                value={"verb": "requeue", "filter": FILTER, "spread": 600},
                request_only=True,
            ),
            OpenApiExample("dry run", value=PREVIEW, response_only=True, status_codes=["200"]),
            OpenApiExample("begun", value=OPERATION, response_only=True, status_codes=["202"]),
        ],
    )
    @needs(VIEW, body=BulkInput, scope="operate", problems=REFUSALS)
    def post(self, request: Request) -> HttpResponse:
        """Begin a bulk operation (202), or tell what it would be about (200, `dry_run`).

        Needs the permission of its verb, too. A dry run counts up to 100,000 jobs and changes
        nothing.
        """
        body = self.body
        self.require(body["verb"])
        choice = choice_of(body)
        if body["dry_run"]:
            found = control.bulk_preview(body["verb"], backend=self.backend, **choice)
            return conditional(request, _preview(found))
        operation = control.bulk_start(
            body["verb"],
            self.caller.actor,
            backend=self.backend,
            **choice,
            **parameters_of(body),
        )
        response = conditional(request, self.document(operation), status=202)
        response["Location"] = f"{request.path}{operation.pk}/"
        return response


class BulkView(_Bulk):
    """One bulk operation."""

    @extend_schema(
        responses={200: BulkDocument, 304: None},
        examples=[OpenApiExample("an operation", value=OPERATION)],
    )
    @needs(VIEW, problems=("bulk-operation-not-found",))
    def get(self, request: Request, operation_id: int) -> HttpResponse:
        """Show how far a bulk operation is."""
        return conditional(request, self.document(self.find(operation_id)))


class _TurnView(_Bulk):
    """Stopping and resuming."""

    def turn(
        self, request: Request, operation_id: int, do: Callable[..., None], already: BulkState
    ) -> HttpResponse:
        """Stop or resume an operation; one that is there already is answered as it is."""
        _ = self.body
        self.require(self.find(operation_id).verb)
        try:
            do(operation_id, self.caller.actor, backend=self.backend)
        except WrongState as error:
            if error.current_state != already:
                raise
        return conditional(request, self.document(self.find(operation_id)))


class StopView(_TurnView):
    """Stopping a bulk operation."""

    @extend_schema(
        responses={200: BulkDocument},
        examples=[
            NOTHING,
            OpenApiExample(
                "stopped",
                value={**OPERATION, "state": "stopped", "allowed_actions": ["resume"]},
                response_only=True,
            ),
        ],
    )
    @needs(
        VIEW,
        body=Nothing,
        scope="operate",
        problems=("bulk-operation-not-found", "permission-denied", "wrong-state", "row-locked"),
    )
    def post(self, request: Request, operation_id: int) -> HttpResponse:
        """Stop a bulk operation after the step it is in; what was done stays done."""
        return self.turn(request, operation_id, control.bulk_stop, BulkState.STOPPED)


class ResumeView(_TurnView):
    """Resuming a bulk operation."""

    @extend_schema(
        responses={200: BulkDocument},
        examples=[NOTHING, OpenApiExample("goes on", value=OPERATION, response_only=True)],
    )
    @needs(
        VIEW,
        body=Nothing,
        scope="operate",
        problems=("bulk-operation-not-found", "permission-denied", "wrong-state", "row-locked"),
    )
    def post(self, request: Request, operation_id: int) -> HttpResponse:
        """Let a bulk operation that was stopped, or that failed, go on where it was."""
        return self.turn(request, operation_id, control.bulk_resume, BulkState.RUNNING)


def _preview(found: control.Preview) -> dict[str, Any]:
    def named(counts: Any) -> dict[str, int]:
        return {text(name): number for name, number in counts.items()}

    return {
        "verb": found.verb,
        "filter": text(found.filter),
        "count": found.count,
        "count_is_capped": found.is_capped,
        "by_state": named(found.by_state),
        "by_queue": named(found.by_queue),
        "by_task": named(found.by_task),
    }
