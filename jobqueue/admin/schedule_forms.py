"""The form of a schedule: its fields are the keywords of `jobqueue.declarations`.

Whether a plan can be is decided where it always is, by `jobqueue.control`; what it says of a
keyword is shown at its field.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue.admin.job_filters import task_names
from jobqueue.cron import zone_of
from jobqueue.engine.making import exposed_task
from jobqueue.engine.schedule_rows import keywords_of
from jobqueue.exceptions import InvalidSchedule, TaskNotExposed
from jobqueue.models import Schedule
from jobqueue.plan import MAX_JITTER_SECONDS, MAX_MISSED_LIMIT, MISSED, MISSED_LIMIT, OVERLAP

MISSED_LABELS = {
    "once": gettext_lazy("one job for all ticks that were missed"),
    "skip": gettext_lazy("none for ticks that were missed"),
    "all": gettext_lazy("a job for each, up to the limit"),
}
OVERLAP_LABELS = {
    "allow": gettext_lazy("beside earlier ones"),
    "skip": gettext_lazy("none while an earlier one has not ended"),
    "queue": gettext_lazy("after the earlier ones"),
}
TIME = {"type": "datetime-local", "step": "1"}


class JSONText(forms.CharField):
    """JSON of one kind, typed as text."""

    def __init__(self, kind: type, **options: Any) -> None:
        self.kind = kind
        widget = forms.Textarea(
            attrs={"rows": 3, "class": "jq-code", "dir": "ltr", "spellcheck": "false"}
        )
        super().__init__(required=False, widget=widget, **options)

    def clean(self, value: Any) -> Any:
        """Return the list or object that the text says."""
        text = super().clean(value)
        try:
            found = json.loads(text) if text.strip() else self.kind()
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(_("Not JSON: %(why)s") % {"why": error}) from None
        if not isinstance(found, self.kind):
            wanted = _("a list") if self.kind is list else _("an object")
            raise forms.ValidationError(_("This has to be %(wanted)s.") % {"wanted": wanted})
        return found


def local_time(label: Any) -> forms.CharField:
    """Return a field for a time without an offset: one of the schedule's zone."""
    return forms.CharField(
        label=label,
        required=False,
        widget=forms.TextInput(attrs=TIME),
        help_text=gettext_lazy("In this schedule's time zone."),
    )


class ScheduleForm(forms.Form):
    """What people decide about a schedule."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=128)
    task = forms.ChoiceField(label=gettext_lazy("Task"))
    args = JSONText(list, label=gettext_lazy("Arguments"), help_text=gettext_lazy("A JSON list."))
    kwargs = JSONText(
        dict, label=gettext_lazy("Arguments by name"), help_text=gettext_lazy("A JSON object.")
    )
    cron = forms.CharField(
        label=gettext_lazy("Cron expression"),
        required=False,
        help_text=gettext_lazy("Minute, hour, day of month, month, day of week; or an @name."),
    )
    every = forms.IntegerField(label=gettext_lazy("or every so many seconds"), required=False)
    at = local_time(gettext_lazy("or once, at"))
    time_zone = forms.CharField(
        label=gettext_lazy("Time zone"),
        required=False,
        help_text=gettext_lazy("Such as Europe/Paris; of all times of this schedule."),
    )
    start = local_time(gettext_lazy("No tick before"))
    end = local_time(gettext_lazy("No tick after"))
    missed = forms.ChoiceField(
        label=gettext_lazy("After a stop of all schedulers"),
        choices=[(key, MISSED_LABELS[key]) for key in MISSED],
    )
    missed_limit = forms.IntegerField(
        label=gettext_lazy("Limit of jobs for missed ticks"),
        min_value=1,
        max_value=MAX_MISSED_LIMIT,
        initial=MISSED_LIMIT,
    )
    overlap = forms.ChoiceField(
        label=gettext_lazy("Its jobs run"), choices=[(key, OVERLAP_LABELS[key]) for key in OVERLAP]
    )
    jitter = forms.IntegerField(
        label=gettext_lazy("Jitter in seconds"),
        min_value=0,
        max_value=MAX_JITTER_SECONDS,
        initial=0,
        help_text=gettext_lazy("A job is due up to so long after its tick."),
    )
    queue_name = forms.CharField(
        label=gettext_lazy("Queue"),
        required=False,
        help_text=gettext_lazy("Empty: the task's own."),
    )
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        required=False,
        min_value=-100,
        max_value=100,
        help_text=gettext_lazy("-100 … 100; higher is sooner. Empty: the task's own."),
    )
    enabled = forms.BooleanField(label=gettext_lazy("Enabled"), required=False, initial=True)
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, with_arguments: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        given = self.data.get("task") or self.initial.get("task") or ""
        choices = self.fields["task"].choices = task_choices(given)  # type: ignore[attr-defined]
        self.fields["task"].help_text = offered_help(choices)
        if not with_arguments:
            del self.fields["args"], self.fields["kwargs"]

    def keywords(self) -> dict[str, Any]:
        """Return the keywords for `jobqueue.control`; a kind of plan that is empty is left out."""
        given = dict(self.cleaned_data)
        del given["name"]
        given.pop("version", None)
        for name in ("start", "end", "at", "every"):
            given[name] = given[name] or None
        return given

    def refuse(self, error: InvalidSchedule) -> None:
        """Show what is wrong with a keyword at its field."""
        for keyword, why in error.errors.items():
            self.add_error(keyword if keyword in self.fields else None, why)


def initial_of(schedule: Schedule) -> dict[str, Any]:
    """Return what the form of a schedule shows at first."""
    given: dict[str, Any] = keywords_of(schedule)
    for name in ("start", "end", "at"):
        given[name] = _local(given[name], schedule)
    for name, empty in (("args", []), ("kwargs", {})):
        given[name] = json.dumps(given.get(name, empty), ensure_ascii=False)
    return given | {"name": schedule.name, "version": schedule.version}


def _local(value: datetime | None, schedule: Schedule) -> str:
    if value is None:
        return ""
    return value.astimezone(zone_of(schedule.time_zone)).strftime("%Y-%m-%dT%H:%M:%S")


def task_choices(given: str = "") -> list[tuple[str, str]]:
    """Return the tasks that staff may plan or submit, and the one that is chosen already."""
    names = [name for name in task_names() if _is_offered(name)]
    if given and given not in names:
        names.append(given)
    return [("", "—"), *((name, name) for name in sorted(names))]


def offered_help(choices: Sequence[Any]) -> str:
    """Return which tasks are among the choices; if there are none, how one comes to be."""
    if len(choices) > 1:
        return _('Tasks whose definition says expose={"staff"}.')
    return _(
        'No task is offered to staff yet. Write @task(expose={"staff"}) above one that staff may '
        "start, and restart the server."
    )


def _is_offered(name: str) -> bool:
    try:
        exposed_task(name, "admin")
    except TaskNotExposed:
        return False
    return True
