"""Pausing and resuming a queue. A paused queue is never claimed from; running jobs go on."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Model, QuerySet
from django.db.models.functions import Now

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS, DEFAULT_TASK_QUEUE_NAME
from jobqueue.conf import MAX_QUEUE_NAME_LENGTH, options_for
from jobqueue.engine.operations import Actor, Desk, Outcome
from jobqueue.events import emit
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Job, Queue
from jobqueue.states import LIVE
from jobqueue.storage import Storage

MAX_REASON_LENGTH = 255


def pause(
    queue: str, actor: Actor, reason: str = "", *, backend: str = DEFAULT_TASK_BACKEND_ALIAS
) -> Outcome:
    """Pause `queue`, whatever it holds. Pausing a paused queue changes nothing."""
    check_name(queue)
    desk = Desk(actor, backend)
    reason = reason[:MAX_REASON_LENGTH]

    def run(storage: Storage) -> bool:
        queues = Queue.objects.using(desk.database)
        queues.bulk_create([Queue(name=queue)], ignore_conflicts=True)
        changed = queues.filter(name=queue, paused=False).update(
            paused=True, paused_at=Now(), paused_by=actor.name, paused_reason=reason
        )
        if changed:
            desk.record("pause", 1, target=queue, detail={"reason": reason} if reason else None)
            desk.after_commit(lambda: emit("queue.paused", queue=queue, actor=actor.name))
        return bool(changed)

    return _outcome("paused", desk.transact(run))


def resume(queue: str, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> Outcome:
    """Let workers claim from `queue` again, and hint at it."""
    check_name(queue)
    desk = Desk(actor, backend)

    def run(storage: Storage) -> bool:
        changed = (
            Queue.objects.using(desk.database)
            .filter(name=queue, paused=True)
            .update(paused=False, paused_at=None, paused_by="", paused_reason="")
        )
        if changed:
            desk.record("resume", 1, target=queue)
            desk.hint({queue})
            desk.after_commit(lambda: emit("queue.resumed", queue=queue, actor=actor.name))
        return bool(changed)

    return _outcome("resumed", desk.transact(run))


def _outcome(done: str, is_changed: bool) -> Outcome:
    return Outcome(done, given_counts={done if is_changed else f"skipped: already {done}": 1})


def check_name(queue: object) -> None:
    """Raise InvalidArgument unless `queue` can be the name of a queue."""
    if (
        not isinstance(queue, str)
        or not queue
        or len(queue) > MAX_QUEUE_NAME_LENGTH
        or "\x00" in queue
    ):
        raise InvalidArgument(
            f"The name of a queue has 1 to {MAX_QUEUE_NAME_LENGTH} characters, not {queue!r}."
        )


def known_queues(backend: str) -> list[str]:
    """Return the queues in QUEUES, and those that somebody has set something on."""
    params = getattr(settings, "TASKS", {}).get(backend, {})
    names = set(params.get("QUEUES", [DEFAULT_TASK_QUEUE_NAME]) or ())
    names.update(_rows(backend, Queue).values_list("name", flat=True))
    return sorted(names)


def has_live_jobs(queue: str, backend: str) -> bool:
    """Return whether a job of `queue` waits or runs.

    State by state, as each has an index; asked at once, the jobs that have ended are read, too.
    """
    jobs = _rows(backend, Job).filter(queue=queue)
    return any(jobs.filter(state=state).exists() for state in LIVE)


def _rows(backend: str, model: type[Model]) -> QuerySet[Any]:
    return model._default_manager.using(options_for(backend).database)
