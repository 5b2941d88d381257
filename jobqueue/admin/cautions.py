"""What somebody should know who is about to let many jobs run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Max
from django.utils.translation import gettext as _

from jobqueue import control
from jobqueue.admin import home, marks
from jobqueue.engine.health import task_failures
from jobqueue.engine.status import leases_left
from jobqueue.filters import Filter
from jobqueue.models import ErrorGroup, Queue

LETS_RUN = frozenset({"requeue", "run_now", "reschedule"})


def cautions(preview: control.Preview, failed_at: datetime | None) -> list[Any]:
    """Return why these jobs would not run now, or would fail: no worker, a pause, an outage.

    failed_at: when the error that they are chosen by was last seen, which tells of an outage.
    """
    if preview.verb not in LETS_RUN:
        return []
    return [*_hindrances(preview), *(_outages(preview) if failed_at is None else ())]


def _hindrances(preview: control.Preview) -> Iterator[Any]:
    if all(left < 0 for left in leases_left(home.alias()).values()):
        yield _("No worker is alive: they wait until one starts.")
    paused = Queue.objects.using(home.database()).filter(paused=True, name__in=preview.by_queue)
    for queue in paused.order_by("name"):
        given = {"queue": marks.visible(queue.name), "who": marks.visible(queue.paused_by)}
        told = _("Queue %(queue)s is paused by %(who)s.") % given
        yield f"{told} {marks.visible(queue.paused_reason)}".strip()


def _outages(preview: control.Preview) -> Iterator[Any]:
    for task in task_failures(home.database()):
        if task.task in preview.by_task and task.is_failing:
            yield _(
                "%(failed)s of %(attempts)s attempts of %(task)s failed in the last ten minutes: "
                "look at its errors first."
            ) % {
                "failed": f"{task.failed:,}",
                "attempts": f"{task.attempts:,}",
                "task": marks.visible(task.task),
            }


def last_failed(chosen: Filter) -> datetime | None:
    """Return when the errors that a filter names were last seen, None if it names none."""
    named = [
        value.text
        for term in chosen.of("fingerprint")
        if not term.is_negated
        for value in term.values
    ]
    groups = ErrorGroup.objects.using(home.database()).filter(pk__in=named)
    last: datetime | None = groups.aggregate(last=Max("last_seen"))["last"] if named else None
    return last
