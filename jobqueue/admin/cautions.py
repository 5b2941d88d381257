"""What somebody should know who is about to let jobs run."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from typing import Any

from django.db.models import OuterRef, Subquery
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobqueue.admin import home, marks
from jobqueue.admin.base import OperationsAdmin
from jobqueue.engine.health import task_failures
from jobqueue.engine.status import leases_left
from jobqueue.filters import Filter
from jobqueue.models import ErrorGroup, Queue

MAX_ERRORS = 5
"""Errors of one filter that are named."""
LETS_RUN = frozenset({"requeue", "run_now", "reschedule"})


def cautions(verb: str, tasks: Collection[str], queues: Collection[str]) -> list[Any]:
    """Return why jobs would not run now, or would fail: no worker, a pause, an outage.

    tasks, queues: of the jobs that the verb is for; nothing is said of others.
    """
    if verb not in LETS_RUN:
        return []
    paused = Queue.objects.using(home.database()).filter(paused=True, name__in=queues)
    return [
        *_no_worker(),
        *(_paused(q.name, q.paused_by, q.paused_reason) for q in paused.order_by("name")),
        *outages(tasks),
    ]


def cautions_of_filter(verb: str, chosen: Filter, errors: Iterable[ErrorGroup]) -> list[Any]:
    """Return the same of a filter, without looking for its jobs.

    So it is said of the tasks and queues that the filter names, and of those of its errors alone.
    """
    found = [(error.task, error.queue) for error in errors]
    tasks = {*_named(chosen, "task"), *(task for task, _queue in found)}
    queues = {*_named(chosen, "queue"), *(queue for _task, queue in found)}
    return cautions(verb, tasks, queues)


def with_pause(jobs: Any) -> Any:
    """Add to jobs what `cautions_of` asks of their queues, so that it costs no query."""
    paused = Queue.objects.filter(name=OuterRef("queue"), paused=True)
    names = ("paused_by", "paused_reason")
    return jobs.annotate(**{name: Subquery(paused.values(name)) for name in names})


def pauses_of(jobs: Iterable[Any]) -> list[str]:
    """Return which queues of jobs of `with_pause` are paused."""
    told = [
        _paused(job.queue, job.paused_by, job.paused_reason)
        for job in jobs
        if job.paused_by is not None
    ]
    return list(dict.fromkeys(told))


def cautions_of(job: Any, verbs: Iterable[str]) -> list[Any]:
    """Return the same of one job of `with_pause`, if one of these verbs lets it run."""
    if LETS_RUN.isdisjoint(verbs):
        return []
    return [*_no_worker(), *pauses_of([job]), *outages((job.task,))]


def _no_worker() -> Iterator[Any]:
    if all(left < 0 for left in leases_left(home.alias()).values()):
        yield _("No worker is alive: nothing runs until one starts.")


def _paused(queue: str, by: str, reason: str) -> str:
    given = {"queue": marks.visible(queue), "who": marks.visible(by)}
    told = _("Queue %(queue)s is paused by %(who)s.") % given
    return f"{told} {marks.visible(reason)}".strip()


def outages(tasks: Container[str]) -> Iterator[Any]:
    """Yield which of these tasks have failed more often than not of late."""
    for task in task_failures(home.database()):
        if task.task in tasks and task.is_failing:
            yield _(
                "%(failed)s of %(attempts)s attempts of %(task)s failed in the last ten minutes: "
                "look at its errors first."
            ) % {
                "failed": f"{task.failed:,}",
                "attempts": f"{task.attempts:,}",
                "task": marks.visible(task.task),
            }


def fingerprints(chosen: Filter) -> list[str]:
    """Return the fingerprints of errors by which a filter chooses jobs."""
    return _named(chosen, "fingerprint")


def _named(chosen: Filter, key: str) -> list[str]:
    return [value.text for term in chosen.of(key) if not term.is_negated for value in term.values]


def errors_of(chosen: Filter) -> list[ErrorGroup]:
    """Return the errors that a filter names, those seen last first."""
    named = fingerprints(chosen)
    groups = ErrorGroup.objects.using(home.database()).filter(pk__in=named)
    return list(groups.order_by("-last_seen")[:MAX_ERRORS]) if named else []


def shown_errors(site: OperationsAdmin, groups: Iterable[ErrorGroup]) -> list[SafeString]:
    """Return a sentence on each: what a fingerprint stands for, and when it was last seen."""
    return [
        format_html(
            _("{error} was last seen at {at} ({ago})."),
            error=marks.link(
                site.url_of("errorgroup", "change", group.pk), marks.code(group.error_class)
            ),
            at=marks.moment(group.last_seen),
            ago=marks.since(group.last_seen),
        )
        for group in groups
    ]
