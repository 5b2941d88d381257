"""``/jobs/{id}/cancel/ requeue/ discard/ run-now/``: what operators do to one job.

Repeating is harmless: a job that is already where the action leads is answered as if it had been
led there now, and nothing is changed. Any other state that the action cannot leave is 409 with
what can be done instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api.access import needs
from jobqueue.api.inputs import NOTHING, Flag, Nothing
from jobqueue.api.resources.jobs import examples
from jobqueue.api.resources.jobs.documents import JobDetail
from jobqueue.api.resources.jobs.fields import Text
from jobqueue.api.resources.jobs.one import JobResource
from jobqueue.api.serializers import StrictSerializer
from jobqueue.conf import MAX_JOB_REASON_LENGTH
from jobqueue.engine.operations import ASKED
from jobqueue.exceptions import WrongState
from jobqueue.states import State

PROBLEMS = ("job-not-found", "wrong-state", "row-locked", "invalid-argument")
ALREADY: dict[str, frozenset[State]] = {
    "cancel": frozenset({State.CANCELLED}),
    "requeue": frozenset({State.READY, State.BLOCKED}),
    "discard": frozenset({State.CANCELLED}),
    "run_now": frozenset(),
}
"""States in which a job already is where an action leads. (run_now leaves what waits as it is.)"""


class Reason(StrictSerializer):
    """Why; it is kept with the action and with the job."""

    reason = Text(required=False, allow_blank=True, default="", max_length=MAX_JOB_REASON_LENGTH)


class Cancel(Reason):
    """How to cancel."""

    force = Flag(
        required=False,
        default=False,
        help_text="End a running attempt at once instead of asking it to stop. Its writes roll "
        "back if it is atomic; what it does elsewhere may go on until it notices.",
    )


def _shows(value: dict[str, Any]) -> list[OpenApiExample]:
    return [OpenApiExample("the job", value=value, response_only=True, status_codes=["200"])]


class _ActionView(JobResource):
    """One action on one job."""

    def act(
        self, request: Request, job_id: UUID, name: str, do: Callable[..., control.Outcome]
    ) -> HttpResponse:
        """Do it, and answer with the job; 202 if its worker was only asked."""
        _ = self.body
        self.require(job_id)
        outcome = do([job_id], self.caller.actor, backend=self.backend)
        try:
            control.require_change(outcome)
        except WrongState as error:
            if error.current_state not in ALREADY[name]:
                raise self.refusal(error) from error
        is_asked = outcome.results.get(job_id) == ASKED
        return self.answer(request, job_id, status=202 if is_asked else 200)


class CancelView(_ActionView):
    """Cancelling a job."""

    @extend_schema(
        responses={200: JobDetail, 202: JobDetail},
        examples=[
            OpenApiExample(
                "ask it to stop",
                value={"reason": "the order was withdrawn", "force": False},
                request_only=True,
            ),
            OpenApiExample(
                "cancelled",
                value={**examples.CHANGED, "state": "cancelled", "allowed_actions": ["requeue"]},
                response_only=True,
                status_codes=["200"],
            ),
            OpenApiExample("asked", value=examples.ASKED, response_only=True, status_codes=["202"]),
        ],
    )
    @needs("cancel", body=Cancel, problems=PROBLEMS)
    def post(self, request: Request, job_id: UUID) -> HttpResponse:
        """Cancel a job.

        One that waits is cancelled (200). A running one is asked to stop (202): its worker sees it
        within one heartbeat, and whatever its attempt comes to, the job does not run again.
        """
        body = self.body

        def cancel(ids: list[UUID], actor: control.Actor, backend: str) -> control.Outcome:
            return control.cancel(ids, actor, body["force"], reason=body["reason"], backend=backend)

        return self.act(request, job_id, "cancel", cancel)


class RequeueView(_ActionView):
    """Requeueing a job."""

    @extend_schema(
        responses={200: JobDetail},
        examples=[NOTHING, *_shows({**examples.CHANGED, "state": "ready"})],
    )
    @needs("requeue", body=Nothing, problems=PROBLEMS)
    def post(self, request: Request, job_id: UUID) -> HttpResponse:
        """Give a dead or cancelled job a new budget of attempts, and make it ready."""
        return self.act(request, job_id, "requeue", control.requeue)


class DiscardView(_ActionView):
    """Discarding a dead letter."""

    @extend_schema(
        responses={200: JobDetail},
        examples=[
            OpenApiExample("why", value={"reason": "nobody wants it"}, request_only=True),
            *_shows({**examples.DETAIL, "state": "cancelled", "allowed_actions": ["requeue"]}),
        ],
    )
    @needs("discard", body=Reason, problems=PROBLEMS)
    def post(self, request: Request, job_id: UUID) -> HttpResponse:
        """Give a dead letter up for good."""
        reason = self.body["reason"]

        def discard(ids: list[UUID], actor: control.Actor, backend: str) -> control.Outcome:
            return control.discard(ids, actor, reason=reason, backend=backend)

        return self.act(request, job_id, "discard", discard)


class RunNowView(_ActionView):
    """Making a job due now."""

    @extend_schema(
        responses={200: JobDetail},
        examples=[NOTHING, *_shows({**examples.CHANGED, "state": "ready"})],
    )
    @needs("run_now", body=Nothing, problems=PROBLEMS)
    def post(self, request: Request, job_id: UUID) -> HttpResponse:
        """Make a job that waits due now; a blocked one stays blocked."""
        return self.act(request, job_id, "run_now", control.run_now)
