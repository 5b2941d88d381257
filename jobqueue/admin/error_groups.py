"""Errors: what fails, grouped by likeness, with dead letters to requeue at once or in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _

from jobqueue import permissions
from jobqueue.admin import charts, home, marks, words
from jobqueue.admin.cautions import outages, pauses_of, with_pause
from jobqueue.admin.records import RecordAdmin
from jobqueue.disclosure import shown_error
from jobqueue.engine.statistics import error_group, error_groups
from jobqueue.filters import Filter, term
from jobqueue.models import Job, JobTag
from jobqueue.states import State

PERIODS = {"1h": 3_600.0, "1d": 86_400.0, "7d": 7 * 86_400.0, "30d": 30 * 86_400.0}
DEFAULT_PERIOD = "1d"
MAX_GROUPS = 50
MAX_JOBS = 20


class ErrorGroupAdmin(RecordAdmin):
    """Groups of alike errors, the last seen or the most frequent first."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, permissions.VIEW) and super().has_view_permission(request, obj)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return the groups of a period."""
        if not self.has_view_permission(request):
            self.require(request, permissions.VIEW)
            return HttpResponse(status=403)
        period = request.GET.get("period", DEFAULT_PERIOD)
        period = period if period in PERIODS else DEFAULT_PERIOD
        by_count = request.GET.get("order") == "count"
        found = error_groups(
            PERIODS[period],
            "count" if by_count else "last_seen",
            limit=MAX_GROUPS,
            backend=home.alias(),
        )
        context = {
            "title": _("Errors"),
            "groups": [self._line(request, line, period) for line in found.groups],
            "as_of": marks.moment(found.as_of),
            "choices": _choices(period, by_count),
            **(extra_context or {}),
        }
        return self.page(request, "errorgroup/list.html", context)

    def _line(self, request: HttpRequest, line: Any, period: str) -> dict[str, Any]:
        message = self._message(request, line)
        alike = Filter((term("state", "dead"), term("fingerprint", line.fingerprint)))
        query = urlencode({"filter": str(alike), "next": request.get_full_path()})
        return {
            "url": f"{self.url('change', line.fingerprint)}?period={period}",
            "error_class": marks.dotted(line.error_class.rpartition(".")[2] or line.error_class),
            "message": marks.text(message.split("\n", 1)[0], 200),
            "task": marks.dotted(line.task, 100),
            "count": marks.number(line.count),
            "total": marks.number(line.total),
            "first_seen": marks.moment(line.first_seen),
            "last_seen": marks.moment(line.last_seen),
            "dead": line.dead,
            "chart": charts.sparkline(line.counts, failed=line.counts),
            "verbs": [
                (words.verb(verb), f"{self.url_of('job', 'matching', verb)}?{query}", tone)
                for verb, tone in ((verb, words.tone_of(verb)) for verb in ("requeue", "discard"))
                if line.dead and self.may(request, verb)
            ],
            "jobs_url": f"{self.url_of('job', 'changelist')}?{urlencode({'q': str(alike)})}",
            "newest_url": self.url_of("job", "change", line.job_id),
        }

    def _cautions(self, request: HttpRequest, line: Any, dead: Iterable[Any]) -> list[Any]:
        """Return whether its dead letters would wait or fail, for whoever may requeue them.

        The page that asks before it says, too, whether any worker lives.
        """
        if not line.dead or not self.may(request, "requeue"):
            return []
        return [*pauses_of(dead), *outages([line.task])]

    def _message(self, request: HttpRequest, line: Any) -> str:
        with_payload = self.may(request, permissions.VIEW_PAYLOAD)
        return shown_error(line.message, task=line.task, may_see_payload=with_payload)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Return the page of one group."""
        if not self.has_view_permission(request):
            self.require(request, permissions.VIEW)
            return HttpResponse(status=403)
        period = request.GET.get("period", DEFAULT_PERIOD)
        period = period if period in PERIODS else DEFAULT_PERIOD
        found = error_group(
            object_id[:32].replace("\x00", ""),
            PERIODS[period],
            backend=home.alias(),
            now=timezone.now(),
        )
        if not found.groups:
            self.message_user(request, _("This error has not been seen for a month."))
            return HttpResponseRedirect(self.url("changelist"))
        line = found.groups[0]
        shown = self._line(request, line, period)
        message = self._message(request, line)
        dead = _dead(line.fingerprint)
        context = {
            "title": marks.visible(marks.cut(line.error_class, 100)),
            "group": shown,
            "cautions": self._cautions(request, line, dead),
            "message": marks.visible(marks.cut(message, 4_000)),
            "chart": charts.bars(
                found.starts,
                line.counts,
                _("Attempts that ended with it"),
                step_seconds=found.step_seconds,
                failed=line.counts,
            ),
            "choices": _periods(period),
            "jobs": _shown(dead),
            "as_of": marks.moment(found.as_of),
        }
        return self.page(request, "errorgroup/detail.html", context)


def _dead(fingerprint: str) -> list[Any]:
    """Return the newest dead letters."""
    jobs = Job.objects.using(home.database()).filter(
        state=State.DEAD.value, error_fingerprint=fingerprint
    )
    rows = with_pause(jobs).only("id", "queue", "enqueued_at", "finished_at")
    return list(rows.order_by("-pk")[:MAX_JOBS])


def _shown(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what is shown of dead letters: what tells one from the others."""
    tags: defaultdict[Any, list[str]] = defaultdict(list)
    found = JobTag.objects.using(home.database()).filter(job_id__in=[job.pk for job in rows])
    for job_id, tag in found.order_by("tag").values_list("job_id", "tag"):
        tags[job_id].append(tag)
    return [
        {
            "id": job.pk,
            "shown": marks.short_id(job.pk),
            "tags": marks.text(", ".join(tags[job.pk])) if tags[job.pk] else marks.NOTHING,
            "queue": marks.text(job.queue, 60),
            "enqueued": marks.moment(job.enqueued_at),
            "died": marks.moment(job.finished_at),
        }
        for job in rows
    ]


def _periods(period: str, query: str = "") -> list[dict[str, Any]]:
    labels = {"1h": _("Past hour"), "1d": _("Past 24 hours"), "7d": _("Past 7 days")}
    labels["30d"] = _("Past 30 days")
    return [
        {"label": label, "query": f"?period={key}{query}", "is_on": key == period}
        for key, label in labels.items()
    ]


def _choices(period: str, by_count: bool) -> list[dict[str, Any]]:
    order = "count" if by_count else "last_seen"
    found = _periods(period, f"&order={order}")
    for key, label in (("last_seen", _("Last seen first")), ("count", _("Most frequent first"))):
        query = f"?period={period}&order={key}"
        found.append({"label": label, "query": query, "is_on": key == order})
    return found
