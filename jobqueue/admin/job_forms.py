"""What an operator has to say beside the verb: a reason, a time, a priority, a queue, a pace.

`parameters()` of a form are keywords of the function in `jobqueue.control`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from jobqueue.admin.job_filters import known_queues
from jobqueue.compat import TASK_MAX_PRIORITY, TASK_MIN_PRIORITY
from jobqueue.conf import MAX_JOB_REASON_LENGTH
from jobqueue.engine.bulk import MAX_SPREAD_SECONDS

SPREAD_FROM = 100
"""Jobs above which a form proposes to spread them; a hundred at once hurt no service that lives."""
SPREAD_MINUTES = 10


class VerbForm(forms.Form):
    """A verb that needs nothing else."""

    def parameters(self) -> dict[str, Any]:
        """Return the keywords for `jobqueue.control`."""
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}


class ReasonForm(VerbForm):
    """A verb with a reason."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=MAX_JOB_REASON_LENGTH,
        required=False,
        help_text=_("Kept with the jobs, for whoever asks later."),
    )


class CancelForm(ReasonForm):
    """A reason, and whether running attempts are ended by force."""

    force = forms.BooleanField(
        label=_("End running attempts by force"),
        required=False,
        help_text=_(
            "Otherwise a running job is asked to stop, and decides itself. By force its worker is "
            "refused: what an atomic job has written is rolled back, but effects outside the "
            "database may go on until it notices."
        ),
    )


class TimeForm(VerbForm):
    """When jobs are due."""

    run_at = forms.DateTimeField(
        label=_("Run at"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zone = timezone.get_current_timezone_name()
        self.fields["run_at"].help_text = _("In the time zone %(zone)s.") % {"zone": zone}

    def clean_run_at(self) -> Any:
        """Return an aware time: without USE_TZ forms return naive ones."""
        value = self.cleaned_data["run_at"]
        return timezone.make_aware(value) if timezone.is_naive(value) else value


class PriorityForm(VerbForm):
    """A priority."""

    priority = forms.IntegerField(
        label=_("Priority"),
        min_value=TASK_MIN_PRIORITY,
        max_value=TASK_MAX_PRIORITY,
        help_text=_("-100 … 100; higher is sooner."),
    )


class QueueForm(VerbForm):
    """A queue."""

    queue = forms.CharField(label=_("Queue"), max_length=255)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known = known_queues()
        self.fields["queue"].help_text = _("Known: %(queues)s") % {"queues": ", ".join(self.known)}


class SpreadForm(VerbForm):
    """How fast jobs come back: all at once, or spread evenly over some minutes."""

    spread = forms.FloatField(
        label=_("Spread over minutes"),
        required=False,
        min_value=0,
        max_value=MAX_SPREAD_SECONDS / 60,
        help_text=_(
            "Empty: all at once. 10: evenly over ten minutes, so that a service which has just "
            "come back is not flooded."
        ),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )

    def parameters(self) -> dict[str, Any]:
        minutes = self.cleaned_data.get("spread")
        return {"spread": timedelta(minutes=minutes)} if minutes else {}


class SpreadTimeForm(TimeForm, SpreadForm):
    """When the first is due, and over how long all are spread."""

    def parameters(self) -> dict[str, Any]:
        return {"run_at": self.cleaned_data["run_at"], **SpreadForm.parameters(self)}


FORMS: dict[str, type[VerbForm]] = {
    "requeue": VerbForm,
    "cancel": CancelForm,
    "discard": ReasonForm,
    "run_now": VerbForm,
    "reschedule": TimeForm,
    "reprioritize": PriorityForm,
    "move": QueueForm,
    "run_again": VerbForm,
}
"""What each verb asks for about jobs that somebody names."""
BULK_FORMS: dict[str, type[VerbForm]] = {
    **{verb: form for verb, form in FORMS.items() if verb != "run_again"},
    "requeue": SpreadForm,
    "cancel": ReasonForm,
    "reschedule": SpreadTimeForm,
}
"""What each verb asks for about all jobs that match; none is ended by force in bulk."""
AT_ONCE = frozenset({"requeue", "run_now"})
"""Verbs about named jobs that need nothing, and destroy or repeat nothing: done at once."""
