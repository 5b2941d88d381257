"""Submitting a job by hand: a task that is offered to staff, with its arguments as JSON.

Prefilled from a job that ran (?again=ID), so that one value can be changed. Where its arguments
hold what is hidden they are not filled in: sent back, the mark would be what the task gets.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue import control, permissions
from jobqueue.admin import home
from jobqueue.admin.base import OperationsAdmin
from jobqueue.admin.payloads import document_columns, shown_document
from jobqueue.admin.schedule_forms import JSONText, offered_help, task_choices
from jobqueue.compat import TASK_MAX_PRIORITY, TASK_MIN_PRIORITY
from jobqueue.exceptions import JobQueueError

MAX_TAGS = 50


class SubmitForm(forms.Form):
    """A task, its arguments, and how it is to run."""

    task = forms.ChoiceField(label=gettext_lazy("Task"))
    args = JSONText(list, label=gettext_lazy("Arguments"), help_text=gettext_lazy("A JSON list."))
    kwargs = JSONText(
        dict, label=gettext_lazy("Arguments by name"), help_text=gettext_lazy("A JSON object.")
    )
    queue = forms.CharField(
        label=gettext_lazy("Queue"),
        required=False,
        help_text=gettext_lazy("Empty: the task's own."),
    )
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        required=False,
        min_value=TASK_MIN_PRIORITY,
        max_value=TASK_MAX_PRIORITY,
        help_text=gettext_lazy("-100 … 100; higher is sooner. Empty: the task's own."),
    )
    run_after = forms.DateTimeField(
        label=gettext_lazy("Not before"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
    )
    tags = forms.CharField(
        label=gettext_lazy("Tags"), required=False, help_text=gettext_lazy("Separated by spaces.")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = self.fields["task"].choices = task_choices()  # type: ignore[attr-defined]
        self.fields["task"].help_text = offered_help(choices)
        zone = timezone.get_current_timezone_name()
        self.fields["run_after"].help_text = _("In the time zone %(zone)s.") % {"zone": zone}

    def options(self) -> dict[str, Any]:
        """Return what goes to `control.enqueue` beside task and arguments."""
        given = self.cleaned_data
        run_after = given["run_after"]
        if run_after is not None and timezone.is_naive(run_after):
            run_after = timezone.make_aware(run_after)
        return {
            "queue": given["queue"] or None,
            "priority": given["priority"],
            "run_after": run_after,
            "tags": given["tags"].split()[:MAX_TAGS] or None,
        }


def submit(site: OperationsAdmin, request: HttpRequest) -> HttpResponse:
    """Return the form, or make the job and go to its page."""
    site.require(request, "enqueue")
    if request.method != "POST":
        return _page(site, request, SubmitForm(initial=_again(site, request)))
    form = SubmitForm(request.POST)
    if form.is_valid():
        given = form.cleaned_data
        try:
            result = control.enqueue(
                given["task"], given["args"], given["kwargs"], home.actor(request), **form.options()
            )
        except JobQueueError as error:
            form.add_error(None, str(error))
        else:
            site.log(request, [(result.id, f"{given['task']} {result.id}")], "enqueue")
            site.message_user(request, _("Submitted."), messages.SUCCESS)
            return HttpResponseRedirect(site.url_of("job", "change", result.id))
    return _page(site, request, form)


def _page(site: OperationsAdmin, request: HttpRequest, form: SubmitForm) -> HttpResponse:
    return site.page(request, "job/submit.html", {"title": _("Submit a job"), "form": form})


def _again(site: OperationsAdmin, request: HttpRequest) -> dict[str, Any]:
    """Return what is filled in from the job that ?again names."""
    try:
        job_id = UUID(request.GET.get("again", ""))
    except ValueError:
        return {}
    rows = site.get_queryset(request).filter(pk=job_id).defer("arguments", "result")
    job: Any = rows.annotate(**document_columns("arguments")).first()
    if job is None:
        return {}
    initial = {"task": job.task, "queue": job.queue, "priority": job.priority}
    if not site.may(request, permissions.VIEW_PAYLOAD):
        return initial
    shown = shown_document(job.arguments_text, job.arguments_size, task=job.task, part="arguments")
    if not shown.whole or not isinstance(shown.value, dict):
        text = _("Its arguments hold hidden values, or are too large: they are not filled in.")
        site.message_user(request, text, messages.WARNING)
        return initial
    for name, empty in (("args", []), ("kwargs", {})):
        initial[name] = json.dumps(shown.value.get(name, empty), ensure_ascii=False)
    return initial
