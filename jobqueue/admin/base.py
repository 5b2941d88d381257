"""What all model admins of jobqueue share: who may do what, what is told and logged, which pages.

Rows are only looked at here. Whatever changes something is a POST of its own, asks for the
permission that `jobqueue.permissions` names, and goes through `jobqueue.control`, which leaves an
Action row; a LogEntry says the same in Django's own history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobqueue import permissions
from jobqueue.admin import home, marks, words
from jobqueue.control import Outcome
from jobqueue.exceptions import JobQueueError
from jobqueue.filters import Filter, Term

MAX_LOGGED = 1_000
"""LogEntry rows of one action; a page has fewer rows, and a bulk operation one entry for all."""
MAX_REPR = 200


if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class OperationsAdmin(ModelAdmin):
    """A model that is looked at, and changed by named actions alone."""

    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    actions_selection_counter = False
    sortable_by = ()
    action_permission: Mapping[str, str] = {}

    class Media:
        css = {"all": ["jobqueue/admin.css"]}

    # --- who may --------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def may(self, request: HttpRequest, action: str) -> bool:
        """Return whether the user may do `action`, by its name in `jobqueue.control`."""
        return permissions.may(request.user, action)

    def require(self, request: HttpRequest, action: str) -> None:
        """Raise PermissionDenied unless the user may look here and do `action`."""
        if not self.has_view_permission(request) or not self.may(request, action):
            raise PermissionDenied

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.model._default_manager.using(home.database())
        return rows

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Refuse what no database can compare: a NUL in the query string."""
        if any("\x00" in value for values in request.GET.lists() for value in values[1]):
            raise BadRequest
        return super().changelist_view(request, extra_context)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the filters that are drawn, and no column beside them.

        Django lets a query string compare any column, which would tell arguments to whoever asks
        often enough.
        """
        drawn = {getattr(each, "parameter_name", None) for each in self.list_filter}
        return lookup in drawn

    @admin.display(description=SafeString('<input type="checkbox" id="action-toggle">'))
    def action_checkbox(self, obj: Any) -> SafeString:
        """Return Django's box, with a label that turns no direction of writing."""
        label = _("Select this object for an action - {}").format(marks.visible(marks.cut(obj)))
        box = forms.CheckboxInput(
            {"class": "action-select", "aria-label": label}, lambda value: False
        )
        return box.render(ACTION_CHECKBOX_NAME, str(obj.pk))

    # --- pages ----------------------------------------------------------------------------------

    def page(
        self, request: HttpRequest, template: str, context: Mapping[str, Any], status: int = 200
    ) -> TemplateResponse:
        """Return one of our own pages, in the frame of whatever admin site this is."""
        request.current_app = self.admin_site.name
        whole = {**self.admin_site.each_context(request), "opts": self.opts, **context}
        return TemplateResponse(request, f"admin/jobqueue/{template}", whole, status=status)

    def confirm(
        self, request: HttpRequest, action: str, question: str, ticked: Mapping[Any, Any]
    ) -> TemplateResponse | None:
        """Return the page that asks once more before an action of the list; None once it has.

        ticked: what is shown of each row, by its primary key.
        """
        if request.POST.get("confirmed") == "1":
            return None
        context = {
            "title": words.verb(action),
            "question": question,
            "action": action,
            "action_name": ACTION_CHECKBOX_NAME,
            "keys": list(ticked),
            "rows": list(ticked.values()),
            "back": request.get_full_path(),
        }
        return self.page(request, "confirm.html", context)

    def url(self, name: str, *args: Any) -> str:
        """Return the address of a page of this model, such as "change" or "changelist"."""
        return self.url_of(self.opts.model_name or "", name, *args)

    def url_of(self, model: str, name: str, *args: Any) -> str:
        """Return the address of a page of another of our models."""
        where = f"admin:jobqueue_{model}_{name}"
        return reverse(where, args=args, current_app=self.admin_site.name)

    def jobs_url(self, *terms: Term) -> str:
        """Return the address of the list of jobs that match all of `terms`."""
        return f"{self.url_of('job', 'changelist')}?{urlencode({'q': str(Filter(terms))})}"

    def back(self, request: HttpRequest, default: str) -> str:
        """Return where the user came from (the field `next`), if that is a page of this site."""
        wanted = request.POST.get("next") or request.GET.get("next") or ""
        is_ours = url_has_allowed_host_and_scheme(
            wanted, {request.get_host()}, require_https=request.is_secure()
        )
        return wanted if wanted and is_ours else default

    # --- what was done --------------------------------------------------------------------------

    def tell(self, request: HttpRequest, verb: str, outcome: Outcome) -> None:
        """Say how many were changed, and how many were not, and why."""
        all_done = set(outcome.counts) <= {outcome.done, "asked"} and outcome.changed
        level = messages.SUCCESS if all_done else messages.WARNING
        text = _("%(verb)s: %(counts)s.") % {
            "verb": words.verb(verb),
            "counts": words.counts(outcome.counts) or _("nothing to do"),
        }
        self.message_user(request, text, level)

    def tell_refusal(self, request: HttpRequest, error: JobQueueError) -> None:
        """Say why nothing was done."""
        text = _("Nothing was changed: %(why)s") % {"why": error}
        self.message_user(request, text, messages.ERROR)

    def log(self, request: HttpRequest, objects: Iterable[tuple[Any, str]], message: str) -> None:
        """Write a LogEntry for each (primary key, what it is)."""
        content_type = ContentType.objects.get_for_model(self.model)
        entries = [
            LogEntry(
                user_id=request.user.pk,  # type: ignore[misc]
                content_type_id=content_type.pk,
                object_id=str(key),
                object_repr=shown[:MAX_REPR],
                action_flag=CHANGE,
                change_message=message,
            )
            for key, shown in list(objects)[:MAX_LOGGED]
        ]
        LogEntry.objects.bulk_create(entries)

    def log_outcome(self, request: HttpRequest, verb: str, outcome: Outcome) -> None:
        """Write a LogEntry for each job that an action changed."""
        changed = {outcome.done, "asked", "superseded"}
        done = [(key, what) for key, what in outcome.results.items() if what in changed]
        self.log(request, ((key, f"{self.opts.model_name} {key}") for key, _what in done), verb)


def allowed_to(verb: str) -> Any:
    """Return what Django asks whether an action is offered: a method ``has_…_permission``."""

    def allowed(self: OperationsAdmin, request: HttpRequest) -> bool:
        return self.may(request, verb)

    return allowed


def not_allowed(*methods: str) -> HttpResponse:
    """Return the answer to a GET of what only POST does."""
    response = HttpResponse(status=405)
    response["Allow"] = ", ".join(methods)
    return response


def field_or_none(model: type[Model], value: Any) -> Any:
    """Return `value` as a primary key of `model`, None where it cannot be one."""
    try:
        return model._meta.pk.to_python(value)
    except Exception:
        return None
