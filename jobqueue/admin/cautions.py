"""What somebody should know who is about to let jobs run, in words of the admin."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from typing import Any

from django.db.models import OuterRef, Subquery
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobqueue.admin import home, marks
from jobqueue.admin.base import OperationsAdmin
from jobqueue.engine.health import TaskFailures
from jobqueue.engine.obstacles import (
    LETS_RUN,
    Obstacles,
    failing,
    no_worker,
    obstacles,
    obstacles_of_filter,
)
from jobqueue.filters import Filter
from jobqueue.models import ErrorGroup, Queue


def cautions(verb: str, tasks: Collection[str], queues: Collection[str]) -> list[Any]:
    """Return why jobs would not run now, or would fail: no worker, a pause, an outage.

    tasks, queues: of the jobs that the verb is for; nothing is said of others.
    """
    return _told(obstacles(verb, tasks, queues, home.alias()))


def cautions_of_filter(verb: str, chosen: Filter, errors: Iterable[ErrorGroup]) -> list[Any]:
    """Return the same of a filter, as far as it and its errors name tasks and queues."""
    return _told(obstacles_of_filter(verb, chosen, errors, home.alias()))


def _told(found: Obstacles) -> list[Any]:
    return [
        *_no_worker(found.no_worker),
        *(_paused(q.name, q.paused_by, q.paused_reason) for q in found.paused),
        *_outages(found.failing),
    ]


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
    return [*_no_worker(no_worker(home.alias())), *pauses_of([job]), *outages((job.task,))]


def _no_worker(none_lives: bool) -> Iterator[Any]:
    if none_lives:
        yield _("No worker is alive: nothing runs until one starts.")


def _paused(queue: str, by: str, reason: str) -> str:
    given = {"queue": marks.visible(queue), "who": marks.visible(by)}
    told = _("Queue %(queue)s is paused by %(who)s.") % given
    return f"{told} {marks.visible(reason)}".strip()


def outages(tasks: Container[str]) -> Iterator[Any]:
    """Yield which of these tasks have failed more often than not of late."""
    return _outages(failing(tasks, home.database()))


def _outages(tasks: Iterable[TaskFailures]) -> Iterator[Any]:
    for task in tasks:
        yield _(
            "%(failed)s of %(attempts)s attempts of %(task)s failed in the last ten minutes: "
            "look at its errors first."
        ) % {
            "failed": f"{task.failed:,}",
            "attempts": f"{task.attempts:,}",
            "task": marks.visible(task.task),
        }


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
