"""What is done to jobs: to one, to those that are ticked, to all that match.

    POST job/ID/do/VERB/        one job
    POST job/selected/VERB/     those that were ticked, once they have been confirmed
    GET  job/matching/VERB/     what a bulk operation would take: counts up to a limit
    POST job/matching/VERB/     begins it; workers carry it out

Rows may have moved on since the page was drawn. That is nobody's error: each is changed by
compare-and-set or not at all, and the answer counts both, with why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue import control, permissions
from jobqueue.admin import home, marks, words
from jobqueue.admin.base import OperationsAdmin, allowed_to, not_allowed
from jobqueue.admin.cautions import cautions, shown_errors
from jobqueue.admin.exporting import COLUMNS, as_csv
from jobqueue.admin.job_forms import (
    AT_ONCE,
    BULK_FORMS,
    FORMS,
    SPREAD_FROM,
    SPREAD_MINUTES,
    VerbForm,
)
from jobqueue.admin.job_lists import Refused, filter_of
from jobqueue.admin.meanings import meaning
from jobqueue.control import Outcome
from jobqueue.engine.obstacles import LETS_RUN, errors_of
from jobqueue.exceptions import JobQueueError
from jobqueue.models import ErrorGroup

MAX_SELECTED = 1_000
"""Jobs that are named in one request; more are said with a filter."""


def _action(verb: str, label: Any) -> Callable[..., Any]:
    """Return an action of the list, offered to whoever may do `verb`."""

    @admin.action(permissions=[verb], description=label)
    def act(modeladmin: JobActions, request: HttpRequest, queryset: Any) -> Any:
        return modeladmin.act_on_selected(request, verb)

    act.__name__ = f"{verb}_selected"
    return act


@admin.action(permissions=["view"], description=gettext_lazy("Export as CSV"))
def export_selected(modeladmin: JobActions, request: HttpRequest, queryset: Any) -> HttpResponse:
    """Return the ticked jobs as CSV."""
    chosen = modeladmin.get_queryset(request).filter(pk__in=selected_ids(request))
    with_payload = modeladmin.may(request, permissions.VIEW_PAYLOAD)
    return as_csv(chosen.only(*COLUMNS).order_by("-pk"), with_payload)


REQUEUE = _action("requeue", gettext_lazy("Requeue"))
CANCEL = _action("cancel", gettext_lazy("Cancel…"))
DISCARD = _action("discard", gettext_lazy("Discard…"))
RUN_NOW = _action("run_now", gettext_lazy("Run now"))
RESCHEDULE = _action("reschedule", gettext_lazy("Run at another time…"))
REPRIORITIZE = _action("reprioritize", gettext_lazy("Change priority…"))
MOVE = _action("move", gettext_lazy("Move to another queue…"))


class JobActions(OperationsAdmin):
    """The views and actions; `JobAdmin` and its like have them."""

    actions: Sequence[Any] = (
        REQUEUE,
        CANCEL,
        DISCARD,
        RUN_NOW,
        RESCHEDULE,
        REPRIORITIZE,
        MOVE,
        export_selected,
    )
    has_requeue_permission = allowed_to("requeue")
    has_cancel_permission = allowed_to("cancel")
    has_discard_permission = allowed_to("discard")
    has_run_now_permission = allowed_to("run_now")
    has_reschedule_permission = allowed_to("reschedule")
    has_reprioritize_permission = allowed_to("reprioritize")
    has_move_permission = allowed_to("move")

    # --- ticked on the list ---------------------------------------------------------------------

    def response_action(  # type: ignore[override] # Django 6.1 says where the action was
        self, request: HttpRequest, queryset: Any, **where: Any
    ) -> Any:
        """Run an action on the ids as they were ticked: a filter might have lost some since.

        "All on every page" is a bulk operation, which has its own page.
        """
        if request.POST.get("select_across") == "1":
            text = _("Nothing was changed. Use “All that match” to act on more than one page.")
            self.message_user(request, text, messages.WARNING)
            return None
        data = request.POST.copy()
        data.setlist(ACTION_CHECKBOX_NAME, [str(job_id) for job_id in selected_ids(request)])
        request.POST = data  # type: ignore[assignment] # what is no id would be compared with ids
        return super().response_action(request, queryset.none(), **where)

    def act_on_selected(self, request: HttpRequest, verb: str) -> HttpResponse | None:
        """Do it, or ask first for what it needs, or where something warns of it."""
        ids = selected_ids(request)
        if verb in AT_ONCE and not self._cautions(request, verb, ids):
            self.perform(request, verb, ids, {})
            return None
        return self._confirm_selected(request, verb, ids, FORMS[verb]())

    def _cautions(self, request: HttpRequest, verb: str, ids: Sequence[UUID]) -> list[Any]:
        """Return what would keep the ticked jobs from running, or let them fail."""
        chosen = self.get_queryset(request).filter(pk__in=ids).order_by()
        found = set(chosen.values_list("task", "queue")) if verb in LETS_RUN else ()
        return cautions(verb, {task for task, _queue in found}, {queue for _task, queue in found})

    def selected_view(self, request: HttpRequest, verb: str) -> HttpResponse:
        """Do to the ticked jobs what was confirmed."""
        self._check(request, verb, FORMS)
        if request.method != "POST":
            return not_allowed("POST")
        form, ids = FORMS[verb](request.POST), selected_ids(request)
        if not form.is_valid():
            return self._confirm_selected(request, verb, ids, form)
        self.perform(request, verb, ids, form.parameters())
        return self.redirect(self.back(request, self.url("changelist")))

    def _confirm_selected(
        self, request: HttpRequest, verb: str, ids: Sequence[UUID], form: VerbForm
    ) -> HttpResponse:
        jobs = self._named(request, ids)
        context = {
            "title": words.verb(verb),
            "meaning": meaning(verb, {job.queue for job in jobs}),
            "verb": verb,
            "tone": words.tone_of(verb),
            "form": form,
            "ids": ids,
            "jobs": [
                (marks.text(job.task, 120), marks.code(job.pk), marks.badge(job.state))
                for job in jobs
            ],
            "cautions": self._cautions(request, verb, ids),
            "action_name": ACTION_CHECKBOX_NAME,
            "post_url": self.url_of("job", "selected", verb),
            "next": request.POST.get("next") or request.get_full_path(),
        }
        return self.page(request, "job/selected.html", context)

    def _named(self, request: HttpRequest, ids: Sequence[UUID]) -> list[Any]:
        chosen = self.get_queryset(request).filter(pk__in=ids)
        return list(chosen.only("id", "task", "state", "queue"))

    # --- one job --------------------------------------------------------------------------------

    def do_view(self, request: HttpRequest, job_id: UUID, verb: str) -> HttpResponse:
        """Do something to one job; say what came of it on its page."""
        self._check(request, verb, FORMS)
        if request.method != "POST":
            return not_allowed("POST")
        page = self.back(request, self.url_of("job", "change", job_id))
        form = FORMS[verb](request.POST)
        if not form.is_valid():
            why = " ".join(str(error) for errors in form.errors.values() for error in errors)
            text = _("Nothing was changed: %(why)s") % {"why": why}
            self.message_user(request, text, messages.ERROR)
            return self.redirect(page)
        outcome = self.perform(request, verb, [job_id], form.parameters())
        if isinstance(outcome, control.Copied) and job_id in outcome.copies:
            page = self.url_of("job", "change", outcome.copies[job_id])
        return self.redirect(page)

    def perform(
        self, request: HttpRequest, verb: str, ids: Sequence[UUID], parameters: Mapping[str, Any]
    ) -> Outcome | None:
        """Do it and tell of it; None where it was refused as a whole."""
        seen = set(self.get_queryset(request).filter(pk__in=ids).values_list("pk", flat=True))
        known = [job_id for job_id in ids if job_id in seen]
        try:
            act = getattr(control, verb)
            outcome = act(known, actor=home.actor(request), backend=home.alias(), **parameters)
        except JobQueueError as error:
            self.tell_refusal(request, error)
            return None
        gone = dict.fromkeys((job_id for job_id in ids if job_id not in seen), "not found")
        self.log_outcome(request, verb, outcome)
        self.tell(request, verb, outcome + Outcome(outcome.done, gone) if gone else outcome)
        return outcome  # type: ignore[no-any-return]

    # --- all that match -------------------------------------------------------------------------

    def matching_view(self, request: HttpRequest, verb: str) -> HttpResponse:
        """Show what a bulk operation would take (GET), or begin it (POST)."""
        self._check(request, verb, BULK_FORMS)
        given = request.POST if request.method == "POST" else request.GET
        text = given.get("filter", "").strip()
        form = BULK_FORMS[verb](request.POST if request.method == "POST" else None)
        try:
            chosen = filter_of(request, text)
            if request.method == "POST" and form.is_valid():
                return self._begin(request, verb, text, form.parameters())
            preview = control.bulk_preview(verb, filter=text, backend=home.alias())
        except (JobQueueError, Refused) as error:
            text = _("Nothing was changed: %(why)s") % {"why": error}
            self.message_user(request, text, messages.ERROR)
            return self.redirect(self.back(request, self.url_of("job", "changelist")))
        if "spread" in form.fields and preview.count > SPREAD_FROM:
            form.initial["spread"] = SPREAD_MINUTES
        return self._confirm_matching(request, preview, form, errors_of(chosen, home.database()))

    def _begin(
        self, request: HttpRequest, verb: str, text: str, parameters: Mapping[str, Any]
    ) -> HttpResponse:
        operation = control.bulk_start(
            verb, home.actor(request), filter=text, backend=home.alias(), **parameters
        )
        bulk = self.admin_site.get_model_admin(type(operation))
        bulk.log(request, [(operation.pk, str(operation))], f"start {verb}")  # type: ignore[attr-defined]
        self.message_user(request, _("The operation has begun. Workers carry it out."))
        return self.redirect(self.url_of("bulkoperation", "change", operation.pk))

    def _confirm_matching(
        self,
        request: HttpRequest,
        preview: control.Preview,
        form: VerbForm,
        errors: Sequence[ErrorGroup],
    ) -> HttpResponse:
        verb = preview.verb
        groups = (
            (_("By state"), {words.state(k): n for k, n in preview.by_state.items()}),
            (_("By queue"), preview.by_queue),
            (_("By task"), preview.by_task),
        )
        context = {
            "title": _("%(verb)s: all that match") % {"verb": words.verb(verb)},
            "verb": verb,
            "verb_label": words.verb(verb),
            "tone": words.tone_of(verb),
            "meaning": meaning(verb, preview.by_queue),
            "preview": preview,
            "cautions": cautions(verb, preview.by_task, preview.by_queue),
            "errors": shown_errors(self, errors),
            "groups": [(title, shown_counts(found)) for title, found in groups if found],
            "form": form,
            "filter": marks.visible(preview.filter),
            "next": self.back(request, self.url_of("job", "changelist")),
        }
        return self.page(request, "job/matching.html", context)

    # --- parts ----------------------------------------------------------------------------------

    def _check(self, request: HttpRequest, verb: str, known: Mapping[str, Any]) -> None:
        if verb not in known:
            raise Http404
        self.require(request, verb)

    @staticmethod
    def redirect(url: str) -> HttpResponseRedirect:
        return HttpResponseRedirect(url)


def shown_counts(found: Mapping[str, int]) -> list[tuple[Any, str]]:
    """Return names and counts as they are shown."""
    return [(marks.dotted(name, 80), marks.number(count)) for name, count in found.items()]


def selected_ids(request: HttpRequest) -> list[UUID]:
    """Return the ids that were ticked, each once; what is no id is nobody's."""
    return list(dict.fromkeys(_ids(request.POST.getlist(ACTION_CHECKBOX_NAME)[:MAX_SELECTED])))


def _ids(texts: Iterable[str]) -> Iterable[UUID]:
    for given in texts:
        try:
            yield UUID(given)
        except ValueError:
            continue
