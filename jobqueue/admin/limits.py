"""Limits: how many jobs of a key run or start, what the code says, and what an operator set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.contrib.admin.utils import quote, unquote
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue import control
from jobqueue.admin import home, marks, words
from jobqueue.admin.base import OperationsAdmin, not_allowed
from jobqueue.exceptions import JobQueueError
from jobqueue.limits import MAX_PERIOD_SECONDS, MAX_RATE, MAX_RUNNING, queue_key
from jobqueue.models import Job
from jobqueue.states import State

TURNS = {"set": "set_limit", "lift": "lift_limit", "reset": "reset_limit"}


class LimitForm(forms.Form):
    """The numbers of a limit."""

    running = forms.IntegerField(
        label=gettext_lazy("At most this many running at once"),
        required=False,
        min_value=0,
        max_value=MAX_RUNNING,
        help_text=gettext_lazy("Empty: any number. 0: none starts until somebody raises it."),
    )
    rate = forms.IntegerField(
        label=gettext_lazy("At most this many starts"),
        required=False,
        min_value=1,
        max_value=MAX_RATE,
        help_text=gettext_lazy("Empty: any number."),
    )
    per = forms.FloatField(
        label=gettext_lazy("in every so many seconds"),
        required=False,
        max_value=MAX_PERIOD_SECONDS,
        help_text=gettext_lazy("100 starts in every 60 seconds, for example."),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=255,
        help_text=gettext_lazy("Kept with the limit, for whoever asks later."),
    )


class KeyForm(forms.Form):
    """The key of a limit."""

    key = forms.CharField(
        label=gettext_lazy("Key"),
        max_length=255,
        help_text=gettext_lazy("The name of a limit, one of its keys (customer:42) or queue:NAME."),
    )


class LimitAdmin(OperationsAdmin):
    """The numbers that claims obey."""

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        turn = path("<str:key>/turn/<slug:turn>/", wrap(self.turn_view), name="jobqueue_limit_turn")
        return [turn, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return all limits; ?key=… leads to the page of one, also of one that is not set yet."""
        self._require_view(request)
        if key := request.GET.get("key", "").strip():
            return HttpResponseRedirect(self.url("change", quote(key)))
        found = {limit.key: limit for limit in control.limits(home.alias())}
        context = {
            "title": _("Limits"),
            "limits": [
                self._line(limit, found.get(_name_of(limit.key))) for limit in found.values()
            ],
            "form": KeyForm() if self.may(request, "set_limit") else None,
        }
        return self.page(request, "limit/list.html", context)

    def _line(
        self, limit: control.LimitStatus, whole: control.LimitStatus | None
    ) -> dict[str, Any]:
        return {
            "key": marks.text(limit.key, 120),
            "url": self.url("change", quote(limit.key)),
            "numbers": numbers(limit.running, limit.rate, limit.per),
            "code": _coded(limit, whole),
            "set_by": marks.text(limit.set_by, 60) if limit.set_by else "",
            "set_at": marks.moment(limit.set_at),
            "reason": marks.text(limit.reason) if limit.reason else "",
            "running": marks.number(limit.running_now),
            "blocked": marks.number(limit.blocked_now),
        }

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Return the page of one limit, also of one that nobody has set yet."""
        self._require_view(request)
        return self._page(request, unquote(object_id), None)

    def _page(self, request: HttpRequest, key: str, form: LimitForm | None) -> HttpResponse:
        found, whole = _found(key), _found(_name_of(key))
        initial = {
            name: getattr(found, name, None) for name in ("running", "rate", "per", "reason")
        }
        may = self.may(request, "set_limit")
        context = {
            "title": marks.visible(marks.cut(key, 120)),
            "limit": self._line(found, whole) if found else _unset(key, whole),
            "queue_url": self._queue_url(key),
            "form": (form or LimitForm(initial=initial)) if may else None,
            "set_url": self.url("turn", quote(key), "set"),
            "others": [
                (words.verb(TURNS[turn]), self.url("turn", quote(key), turn), meaning)
                for turn, meaning in _meanings(found, whole)
            ]
            if may
            else [],
            "is_set": bool(found and found.set_by),
        }
        return self.page(request, "limit/detail.html", context)

    def _queue_url(self, key: str) -> str:
        name = key.removeprefix(queue_key(""))
        return self.url_of("queue", "change", quote(name)) if name != key else ""

    def turn_view(self, request: HttpRequest, key: str, turn: str) -> HttpResponse:
        """Set, lift or reset a limit."""
        if turn not in TURNS:
            raise Http404
        self.require(request, TURNS[turn])
        if request.method != "POST":
            return not_allowed("POST")
        key, form = unquote(key), LimitForm(request.POST)
        if turn == "set" and not form.is_valid():
            return self._page(request, key, form)
        try:
            outcome = _turn(request, key, turn, form.cleaned_data if form.is_valid() else {})
        except JobQueueError as error:
            self.tell_refusal(request, error)
        else:
            if outcome.changed:
                self.log(request, [(key, key)], TURNS[turn])
            self.tell(request, TURNS[turn], outcome)
        return HttpResponseRedirect(self.url("change", quote(key)))

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            self.require(request, "set_limit")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) or self.may(request, "set_limit")


def _turn(request: HttpRequest, key: str, turn: str, given: Mapping[str, Any]) -> control.Outcome:
    actor, alias = home.actor(request), home.alias()
    if turn == "reset":
        return control.reset_limit(key, actor, backend=alias)
    reason = given.get("reason", "")
    if turn == "lift":
        return control.lift_limit(key, actor, reason=reason, backend=alias)
    numbers = {name: given.get(name) for name in ("running", "rate", "per")}
    return control.set_limit(key, actor, reason=reason, backend=alias, **numbers)


def _found(key: str) -> control.LimitStatus | None:
    return next(iter(control.limits(home.alias(), keys=[key])), None) if key else None


def _name_of(key: str) -> str:
    """Return the name of the limit that holds for a key that has none of its own, "" for none."""
    name, colon, _rest = key.partition(":")
    return name if colon and not key.startswith(queue_key("")) else ""


def _coded(limit: control.LimitStatus | None, whole: control.LimitStatus | None) -> str:
    """Return what holds where no operator has set anything; whole: the limit of the key's name."""
    if limit is not None and limit.code:
        return numbers(*limit.code)
    if whole is None:
        return numbers(None, None, None)
    given = {"numbers": numbers(whole.running, whole.rate, whole.per), "name": whole.key}
    return _("%(numbers)s, as for each key of %(name)s") % given


def _meanings(
    limit: control.LimitStatus | None, whole: control.LimitStatus | None
) -> Iterator[tuple[str, str]]:
    """Yield what else may be done to a limit, and what that means: both at once."""
    if limit is None:
        return
    yield (
        "lift",
        _(
            "At once any number starts, also of jobs that wait for room now, and whatever the code "
            "says, until somebody sets or resets it."
        ),
    )
    if limit.set_by:
        told = _(
            "What was set here is forgotten. At once the code decides again, today and after every "
            "deployment; now it says: %(numbers)s."
        )
        yield "reset", told % {"numbers": _coded(limit, whole)}


def _unset(key: str, whole: control.LimitStatus | None) -> dict[str, Any]:
    """Return what holds for a key that has no numbers of its own, and what is under it now."""
    jobs = Job.objects.using(home.database()).filter(state__in=[State.RUNNING, State.BLOCKED])
    name = key.removeprefix(queue_key(""))
    of_queue = name != key
    under = jobs.filter(queue=name, state=State.RUNNING) if of_queue else jobs.filter(limit_key=key)
    counts = dict(under.order_by().values_list("state").annotate(count=Count("id")))
    shown = _coded(None, whole)
    return {
        "numbers": shown,
        "code": shown,
        "running": marks.number(counts.get(State.RUNNING, 0)),
        "blocked": marks.number(counts.get(State.BLOCKED, 0)),
    }


def numbers(running: int | None, rate: int | None, per: float | None) -> str:
    """Return a limit in words."""
    parts = []
    if running is not None:
        parts.append(_("at most %(n)s at once") % {"n": f"{running:,}"})
    if rate is not None and per is not None:
        parts.append(_("%(n)s starts in %(span)s") % {"n": f"{rate:,}", "span": marks.span(per)})
    return _(", ").join(parts) or _("no limit")
