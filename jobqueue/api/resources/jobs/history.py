"""``/jobs/{id}/attempts/ steps/ log/ actions/``: what has happened to a job, the newest first.

Tracebacks, results of steps and log messages (which may have tracebacks in them) are null for
whoever lacks `view_job_payload`; `payload_hidden` says so.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue.api.access import SIGNED_IN, needs
from jobqueue.api.documents import AnyJSON, Document
from jobqueue.api.paging import PageQuery, page_of
from jobqueue.api.problems import Problem
from jobqueue.api.resources.jobs import examples
from jobqueue.api.resources.jobs.documents import MESSAGE
from jobqueue.api.resources.jobs.one import IF_NONE_MATCH, JobResource
from jobqueue.api.values import is_unreadable, moment, shown, text
from jobqueue.disclosure import shown_error, shown_words
from jobqueue.models import Action, Attempt, LogLine, Step, Worker
from jobqueue.redaction import redact, redact_text
from jobqueue.states import Outcome

NEXT = "Address of the older ones."


class AttemptDocument(Document):
    """One execution that has ended."""

    number = serializers.IntegerField()
    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    charged = serializers.BooleanField(help_text="It counts against max_attempts.")
    queue_name = serializers.CharField()
    worker = serializers.UUIDField()
    worker_name = serializers.CharField(allow_blank=True, help_text='"" once it is forgotten.')
    worker_pid = serializers.IntegerField(allow_null=True, help_text="null once it is forgotten.")
    due_at = serializers.DateTimeField(allow_null=True, help_text="Until started_at it waited.")
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField()
    error_class = serializers.CharField(allow_blank=True)
    error_message = serializers.CharField(allow_blank=True, help_text=MESSAGE)
    error_fingerprint = serializers.CharField(allow_blank=True)
    traceback = serializers.CharField(allow_null=True)
    payload_hidden = serializers.BooleanField()


class AttemptList(Document):
    """Attempts of a job."""

    results = AttemptDocument(many=True)
    next = serializers.CharField(allow_null=True, help_text=NEXT)


class StepDocument(Document):
    """One step whose result is kept."""

    name = serializers.CharField()
    recorded_at = serializers.DateTimeField()
    result = AnyJSON()
    payload_hidden = serializers.BooleanField()


class StepList(Document):
    """Steps of a job."""

    results = StepDocument(many=True)
    next = serializers.CharField(allow_null=True, help_text=NEXT)


class LogLineDocument(Document):
    """One line that the job logged."""

    id = serializers.CharField()
    fence = serializers.IntegerField(help_text="Of the run: it grows from one to the next.")
    number = serializers.IntegerField(help_text="Within the run; a gap: lines were left out.")
    logged_at = serializers.DateTimeField()
    level = serializers.CharField()
    logger = serializers.CharField()
    message = serializers.CharField(allow_null=True)
    payload_hidden = serializers.BooleanField()


class LogLineList(Document):
    """Log lines of a job."""

    results = LogLineDocument(many=True)
    next = serializers.CharField(allow_null=True, help_text=NEXT)


class ActionDocument(Document):
    """One thing that an operator did."""

    id = serializers.CharField()
    verb = serializers.CharField()
    actor = serializers.CharField()
    surface = serializers.ChoiceField(choices=["shell", "admin", "api", "page"])
    at = serializers.DateTimeField()
    reason = serializers.CharField(allow_blank=True)


class ActionList(Document):
    """Actions on a job."""

    results = ActionDocument(many=True)
    next = serializers.CharField(allow_null=True, help_text=NEXT)


def _page_example(entry: dict[str, Any]) -> list[OpenApiExample]:
    return [OpenApiExample("a page", value={"results": [entry], "next": None})]


class _HistoryView(JobResource):
    """Rows that belong to one job."""

    def task_of(self, job_id: UUID) -> str:
        """Return the task of a job. Raise Problem if the caller may not know of it."""
        job = self.jobs().filter(id=job_id).only("id", "task").first()
        if job is None:
            raise Problem("job-not-found")
        return job.task

    def rows(self, model: Any, job_id: UUID) -> QuerySet[Any]:
        """Return the rows of a model that belong to a job."""
        found: QuerySet[Any] = model.objects.using(self.database).filter(job_id=job_id)
        return found


class AttemptsView(_HistoryView):
    """Attempts of a job."""

    @extend_schema(
        responses={200: AttemptList, 304: None},
        parameters=[IF_NONE_MATCH],
        examples=_page_example(
            {
                "number": 5,
                "outcome": "failed",
                "charged": True,
                "queue_name": "mail",
                "worker": examples.ASKED["worker"],
                "worker_name": "mail-1",
                "worker_pid": 4711,
                "due_at": "2026-07-14T10:51:25.480000Z",
                "started_at": "2026-07-14T10:51:25.500000Z",
                "finished_at": "2026-07-14T10:51:26.010000Z",
                "error_class": "smtplib.SMTPServerDisconnected",
                "error_message": "Connection unexpectedly closed",
                "error_fingerprint": examples.SUMMARY["error_fingerprint"],
                "traceback": "Traceback (most recent call last):\n  …",
                "payload_hidden": False,
            }
        ),
    )
    @needs(SIGNED_IN, query=PageQuery, problems=("job-not-found",))
    def get(self, request: Request, job_id: UUID) -> HttpResponse:
        """List the attempts of a job that have ended, the last first."""
        task = self.task_of(job_id)
        rows = self.rows(Attempt, job_id)
        return page_of(self, request, rows, "number", partial(self._shown, task))

    def _shown(self, task: str, attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
        workers = Worker.objects.using(self.database).filter(id__in={a.worker for a in attempts})
        known = {id: (name, pid) for id, name, pid in workers.values_list("id", "name", "pid")}
        return [self._attempt(task, a, *known.get(a.worker, ("", None))) for a in attempts]

    def _attempt(
        self, task: str, attempt: Attempt, worker_name: str, worker_pid: int | None
    ) -> dict[str, Any]:
        is_hidden = not self.caller.sees_payload
        return {
            "number": attempt.number,
            "outcome": attempt.outcome,
            "charged": attempt.charged,
            "queue_name": text(attempt.queue),
            "worker": str(attempt.worker),
            "worker_name": text(worker_name),
            "worker_pid": worker_pid,
            "due_at": moment(attempt.due_at),
            "started_at": moment(attempt.started_at),
            "finished_at": moment(attempt.finished_at),
            "error_class": text(attempt.error_class),
            "error_message": text(
                shown_error(attempt.error_message, task=task, may_see_payload=not is_hidden)
            ),
            "error_fingerprint": attempt.error_fingerprint,
            "traceback": None
            if is_hidden
            else text(redact_text(attempt.traceback, task=task, part="error")),
            "payload_hidden": is_hidden,
        }


class StepsView(_HistoryView):
    """Steps of a job."""

    @extend_schema(
        responses={200: StepList, 304: None},
        parameters=[IF_NONE_MATCH],
        examples=_page_example(
            {
                "name": "charge",
                "recorded_at": "2026-07-14T10:51:25.600000Z",
                "result": {"charge": "ch_17"},
                "payload_hidden": False,
            }
        ),
    )
    @needs(SIGNED_IN, query=PageQuery, problems=("job-not-found",))
    def get(self, request: Request, job_id: UUID) -> HttpResponse:
        """List the steps of a job that have a result, the last first."""
        task = self.task_of(job_id)
        return page_of(self, request, self.rows(Step, job_id), "id", partial(self._shown, task))

    def _shown(self, task: str, steps: Sequence[Step]) -> list[dict[str, Any]]:
        is_hidden = not self.caller.sees_payload
        return [
            {
                "name": text(step.name),
                "recorded_at": moment(step.recorded_at),
                "result": None
                if is_hidden or is_unreadable(step.result)
                else shown(redact(step.result, task=task, part="step")),
                "payload_hidden": is_hidden,
            }
            for step in steps
        ]


class LogView(_HistoryView):
    """What a job has logged."""

    @extend_schema(
        responses={200: LogLineList, 304: None},
        parameters=[IF_NONE_MATCH],
        examples=_page_example(
            {
                "id": "1207",
                "fence": 5,
                "number": 2,
                "logged_at": "2026-07-14T10:51:25.700000Z",
                "level": "WARNING",
                "logger": "shop",
                "message": "the mail server is slow",
                "payload_hidden": False,
            }
        ),
    )
    @needs(SIGNED_IN, query=PageQuery, problems=("job-not-found",))
    def get(self, request: Request, job_id: UUID) -> HttpResponse:
        """List what a job has logged, over all its attempts, the last first."""
        task = self.task_of(job_id)
        return page_of(self, request, self.rows(LogLine, job_id), "id", partial(self._shown, task))

    def _shown(self, task: str, lines: Sequence[LogLine]) -> list[dict[str, Any]]:
        is_hidden = not self.caller.sees_payload
        return [
            {
                "id": str(line.pk),
                "fence": shown(line.fence),
                "number": line.number,
                "logged_at": moment(line.logged_at),
                "level": logging.getLevelName(line.level),
                "logger": text(line.logger),
                "message": _words(
                    shown_words(line.message, task=task, may_see_payload=not is_hidden)
                ),
                "payload_hidden": is_hidden,
            }
            for line in lines
        ]


def _words(told: str | None) -> str | None:
    return None if told is None else text(told)


class ActionsView(_HistoryView):
    """What operators did to a job."""

    @extend_schema(
        responses={200: ActionList, 304: None},
        parameters=[IF_NONE_MATCH],
        examples=_page_example(
            {
                "id": "311",
                "verb": "requeue",
                "actor": "kim",
                "surface": "admin",
                "at": "2026-07-14T11:02:00Z",
                "reason": "",
            }
        ),
    )
    @needs(SIGNED_IN, query=PageQuery, problems=("job-not-found",))
    def get(self, request: Request, job_id: UUID) -> HttpResponse:
        """List what operators did to a job by itself, the last first.

        What a bulk operation did to it stands with that operation.
        """
        self.require(job_id)
        return page_of(self, request, self.rows(Action, job_id), "id", _actions)


def _actions(actions: Sequence[Action]) -> list[dict[str, Any]]:
    return [
        {
            "id": str(action.pk),
            "verb": text(action.verb),
            "actor": text(action.actor),
            "surface": action.surface,
            "at": moment(action.at),
            "reason": text(str(_detail(action).get("reason", ""))),
        }
        for action in actions
    ]


def _detail(action: Action) -> dict[str, Any]:
    return action.detail if isinstance(action.detail, dict) else {}
