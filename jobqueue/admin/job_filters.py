"""The filters beside a list of jobs. Each choice stands for terms of the filter language.

So search box and sidebar together are one `Filter`: what the list shows is what a bulk operation on
"all that match" takes, word for word. Choices come from the settings, the registered tasks, small
tables and single index entries; none is looked for in the jobs as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db import connections
from django.utils.translation import gettext_lazy as _

from jobqueue.admin import home, marks, words
from jobqueue.compat import DEFAULT_TASK_QUEUE_NAME
from jobqueue.conf import jobqueue_aliases, options_for
from jobqueue.engine.registry import autodiscover, registry
from jobqueue.events import emit
from jobqueue.exceptions import InvalidFilter
from jobqueue.filters import Term, parse, term
from jobqueue.models import ErrorGroup, Queue, Schedule
from jobqueue.states import State
from jobqueue.storage import storage_for

MAX_CHOICES = 50
"""Choices of one filter; whatever else there is, the search box finds."""
MAX_ERRORS = 1_000
"""Errors whose tasks are among the choices."""

Choices = Sequence[tuple[str, Any]]


class TermFilter(admin.SimpleListFilter):
    """A filter whose values are terms; the list makes one query of all of them."""

    default_label: Any = _("All")

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset

    def terms(self) -> tuple[Term, ...]:
        """Return what the chosen value stands for. Raise InvalidFilter for a wrong one."""
        value = self.value()
        return () if value is None else self.terms_of(value)

    def terms_of(self, value: str) -> tuple[Term, ...]:
        return (term(self.parameter_name or "", value),)

    def has_output(self) -> bool:
        return True  # a value that is in effect must be seen

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the choices; one in effect that is not among them, too.

        What the search says is in effect, too: none is where it says more, or cannot be read.
        """
        value, key = self.value(), str(self.parameter_name)
        first, *others = super().choices(changelist)
        selected = first["selected"] and not _names(changelist.query, key)
        yield {**first, "display": self.default_label, "selected": selected}
        chosen = _said(changelist.query, key) if value is None else value
        known = [str(each) for each, _label in self.lookup_choices]
        for each, choice in zip(known, others, strict=True):
            yield {**choice, "selected": each == chosen}
        if chosen is not None and chosen not in known:
            query = changelist.get_query_string({key: chosen})
            yield {"selected": True, "query_string": query, "display": marks.visible(chosen[:100])}


class StateFilter(TermFilter):
    """States; live ones by default, and in a search dead ones, too."""

    title = _("state")
    parameter_name = "state"
    default_label = _("live (waiting or running)")

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        return [
            *((state.value, words.state(state)) for state in State),
            ("waiting", _("waiting (scheduled, ready, blocked or retrying)")),
            ("any", _("all")),
        ]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the choices; a search looks at dead jobs, too."""
        first, *others = super().choices(changelist)
        display = (
            _("live (waiting or running) or dead") if changelist.query.strip() else first["display"]
        )
        yield {**first, "display": display}
        yield from others


def _names(search: str, key: str) -> bool:
    """Return whether a search says something of `key`; one that cannot be read may."""
    with suppress(InvalidFilter):
        return any(parse(search).of(key))
    return True


def _said(search: str, key: str) -> str | None:
    """Return the value that a search says of `key`; None where it says none, several, or not."""
    with suppress(InvalidFilter):
        match list(parse(search).of(key)):
            case [Term(is_negated=False, values=(value,))] if not value.is_pattern:
                return value.text
    return None


class QueueFilter(TermFilter):
    """Queues of the settings."""

    title = _("queue")
    parameter_name = "queue"

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        return [(name, marks.visible(name[:60])) for name in known_queues()]


class TaskFilter(TermFilter):
    """Tasks that are registered here, or that jobs wait for and no worker knows."""

    title = _("task")
    parameter_name = "task"

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        names = list(dict.fromkeys([*self.unregistered(request), *task_names()]))
        return [(name, marks.dotted(name, 80)) for name in sorted(names[:MAX_CHOICES])]

    def unregistered(self, request: Any) -> Iterable[str]:
        """Return tasks that this process may not know: an index entry is read for each.

        A search in all live and dead jobs needs its queries for looking through those.
        """
        if request.GET.get("q") and not request.GET.get("state"):
            return ()
        options = options_for(home.alias())
        return storage_for(connections[options.database], options).parked_tasks(MAX_CHOICES)


class DeadTaskFilter(TaskFilter):
    """Tasks that are registered here, or of the errors that were seen last."""

    def unregistered(self, request: Any) -> Iterable[str]:
        groups = ErrorGroup.objects.using(home.database()).order_by("-last_seen")
        return groups.values_list("task", flat=True)[:MAX_ERRORS]


class ScheduleFilter(TermFilter):
    """Schedules that there are."""

    title = _("schedule")
    parameter_name = "schedule"

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        rows = Schedule.objects.using(home.database()).order_by("name")
        return [
            (name, marks.visible(name))
            for name in rows.values_list("name", flat=True)[:MAX_CHOICES]
        ]

    def has_output(self) -> bool:
        return bool(self.lookup_choices) or self.value() is not None


class ErrorFilter(TermFilter):
    """Whether a job has an error."""

    title = _("last error")
    parameter_name = "error"

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        return [("yes", _("With an error")), ("no", _("Without an error"))]

    def terms_of(self, value: str) -> tuple[Term, ...]:
        if value in ("yes", "no"):
            return parse("error:*" if value == "yes" else "-error:*").terms
        return (term("error", value),)


class PeriodFilter(TermFilter):
    """When jobs were enqueued."""

    title = _("enqueued")
    parameter_name = "period"
    key = "created"

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        return [
            ("1h", _("Past hour")),
            ("1d", _("Past 24 hours")),
            ("7d", _("Past 7 days")),
            ("30d", _("Past 30 days")),
        ]

    def terms_of(self, value: str) -> tuple[Term, ...]:
        return parse(f"{self.key}>-{value}").terms


class DiedFilter(PeriodFilter):
    """When jobs died."""

    title = _("died")
    key = "finished"


class PoisonFilter(TermFilter):
    """Whether a job was buried because workers died of it."""

    title = _("why it died")
    parameter_name = "reason"

    def lookups(self, request: Any, model_admin: Any) -> Choices:
        return [("poison", _("Poison: killed its workers")), ("other", _("Anything else"))]

    def terms_of(self, value: str) -> tuple[Term, ...]:
        known = {"poison": "reason:poison", "other": "-reason:poison"}
        return parse(known[value]).terms if value in known else (term("reason", value),)


def known_queues() -> list[str]:
    """Return the queues that the settings name; if they name none, those with a row."""
    aliases = jobqueue_aliases()
    params = [getattr(settings, "TASKS", {}).get(alias, {}) for alias in aliases]
    named = {name for each in params for name in each.get("QUEUES", [DEFAULT_TASK_QUEUE_NAME])}
    if not named or not all(each.get("QUEUES", True) for each in params):
        named |= set(Queue.objects.using(home.database()).values_list("name", flat=True))
    return sorted(named)[:MAX_CHOICES]


def task_names() -> list[str]:
    """Return the paths of the tasks that this process knows, sorted."""
    _import_tasks(home.alias())
    return registry.names()


@lru_cache(maxsize=8)
def _import_tasks(alias: str) -> None:
    """Import the modules of tasks, as a worker does; what fails there must not fail a page."""
    try:
        autodiscover(options_for(alias))
    except Exception as error:
        emit("admin.tasks_not_imported", level=logging.WARNING, error=repr(error))


def chosen_terms(specs: Sequence[Any]) -> tuple[Term, ...]:
    """Return the terms of all filters beside a list."""
    return tuple(t for spec in specs if isinstance(spec, TermFilter) for t in spec.terms())
