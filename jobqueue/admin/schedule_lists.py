"""The list of schedules: what each does next, and what came of its last tick."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from jobqueue import control
from jobqueue.admin import home, marks, words
from jobqueue.admin.lists import NamedChangeList
from jobqueue.admin.schedule_forms import MISSED_LABELS, OVERLAP_LABELS


class ScheduleChangeList(NamedChangeList):
    """A page of schedules, each with what it does next and did last."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found = {one.schedule.pk: one for one in control.schedules(home.alias(), count=1)}
        rows = list(self.result_list)
        for row in rows:
            row.status = found.get(row.pk)
        self.result_list = rows


class EnabledFilter(admin.SimpleListFilter):
    """Whether it ticks."""

    title = gettext_lazy("state")
    parameter_name = "enabled"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [("1", gettext_lazy("enabled")), ("0", words.state("disabled"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        value = self.value()
        return queryset.filter(enabled=value == "1") if value in ("0", "1") else queryset


class ScheduleColumns:
    """What the list shows of each."""

    @admin.display(description=gettext_lazy("schedule, task"))
    def name_column(self, row: Any) -> Any:
        return marks.lines([marks.text(row.name), marks.note(marks.dotted(row.task, 100))])

    @admin.display(description=gettext_lazy("plan, time zone"))
    def words_column(self, row: Any) -> Any:
        plan = marks.text(row.status.words if row.status else row.cron, 200)
        return marks.lines([plan, marks.note(marks.text(row.time_zone))])

    @admin.display(description=gettext_lazy("state"))
    def state_column(self, row: Any) -> Any:
        return state_badge(row.status) if row.status else marks.badge("disabled")

    @admin.display(description=gettext_lazy("last tick"))
    def last_column(self, row: Any) -> Any:
        last = row.status.last if row.status else None
        if last is None:
            return marks.NOTHING
        return marks.lines([marks.moment(last.tick), marks.badge(last.job_state or last.outcome)])

    @admin.display(description=gettext_lazy("next tick"))
    def next_column(self, row: Any) -> Any:
        ticks = row.status.next_ticks if row.status and row.status.state == "ticking" else []
        return marks.moment(ticks[0].at) if ticks else marks.NOTHING

    @admin.display(description=gettext_lazy("its jobs run, after a stop"))
    def policy_column(self, row: Any) -> Any:
        return marks.lines([overlap_text(row), marks.note(missed_text(row))])


def state_badge(status: Any) -> Any:
    """Return a schedule's state; one that nobody ticks looks like none that ticks."""
    return marks.badge("late" if status.is_late else status.state)


def overlap_text(row: Any) -> Any:
    """Return how its jobs run beside each other, in the words of the form."""
    return OVERLAP_LABELS.get(row.overlap) or marks.text(row.overlap)


def missed_text(row: Any) -> Any:
    """Return what becomes of missed ticks, in the words of the form."""
    return MISSED_LABELS.get(row.missed) or marks.text(row.missed)
