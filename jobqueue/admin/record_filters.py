"""Filters of the lists of history. Choices are fixed; nothing is looked for in the tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobqueue.admin import words
from jobqueue.engine.bulk_plan import BULK_VERBS
from jobqueue.states import Outcome

Choices = Sequence[tuple[str, Any]]
PERIODS = {"1h": 3_600, "1d": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400}


class ColumnFilter(admin.SimpleListFilter):
    """A filter for one column's exact value."""

    column = ""

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset if value is None else queryset.filter(**{self.column: value})


def _group(verb: str) -> str:
    """Return what an action is about."""
    if "bulk" in verb:
        return "bulk"
    last = verb.rpartition("_")[2]
    return {
        "pause": "queues",
        "resume": "queues",
        "drain": "workers",
        "limit": "limits",
        "schedule": "schedules",
    }.get(last, "jobs")


class VerbFilter(admin.SimpleListFilter):
    """What was done: thirty verbs, by what they are about."""

    title = _("action")
    parameter_name = "about"

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        return [
            ("jobs", _("Jobs")),
            ("bulk", _("Bulk operations")),
            ("queues", _("Queues")),
            ("workers", _("Workers")),
            ("limits", _("Limits")),
            ("schedules", _("Schedules")),
        ]

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return queryset
        verbs = (*words.VERBS, *(f"bulk {verb}" for verb in BULK_VERBS))
        return queryset.filter(verb__in=[verb for verb in verbs if _group(verb) == value])


class SurfaceFilter(ColumnFilter):
    """Through which surface."""

    title = _("where it came from")
    parameter_name = column = "surface"

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        return list(words.SURFACES.items())


class OutcomeFilter(ColumnFilter):
    """How attempts ended."""

    title = _("outcome")
    parameter_name = column = "outcome"

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        return [(outcome.value, words.state(outcome)) for outcome in Outcome]


class AttemptPeriod(admin.SimpleListFilter):
    """When attempts ended."""

    title = _("ended")
    parameter_name = "period"

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        return [
            ("1h", _("Past hour")),
            ("1d", _("Past 24 hours")),
            ("7d", _("Past 7 days")),
            ("30d", _("Past 30 days")),
        ]

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        seconds = PERIODS.get(self.value() or "")
        if seconds is None:
            return queryset
        return queryset.filter(finished_at__gt=Now() - timedelta(seconds=seconds))


class GivenFilter(ColumnFilter):
    """A filter that has no choices of its own: pages link to it with a value."""

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        value = self.value()
        return [] if value is None else [(value, value[:100])]

    def has_output(self) -> bool:
        return self.value() is not None


class ErrorClassFilter(GivenFilter):
    """The class of an error."""

    title = _("error")
    parameter_name = column = "error_class"


class WorkerFilter(GivenFilter):
    """The worker that ran it."""

    title = _("worker")
    parameter_name = column = "worker"

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        try:
            UUID(self.value() or "0" * 32)
        except ValueError:
            return queryset.none()
        return super().queryset(request, queryset)


class ActorSearch:
    """Search by who did it."""

    @staticmethod
    def matching(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        """Return the rows of an actor; of everybody without a text."""
        name = text.strip().replace("\x00", "")
        return rows.filter(actor=name) if name else rows
