"""Pausing and resuming a queue. A paused queue is never claimed from; running jobs go on."""

from __future__ import annotations

from django.db.models.functions import Now

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import MAX_QUEUE_NAME_LENGTH
from jobqueue.engine.operations import Actor, Desk, Outcome
from jobqueue.events import emit
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Queue
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
