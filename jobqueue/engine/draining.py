"""Draining one worker: it claims nothing more, ends the jobs in hand, and exits.

The order is a flag in the worker's row, which its next beat reads. Its supervisor starts no other
in its place; once all its processes are drained it stops itself. To replace a process by a fresh
one, drain is not the way: that is what --max-jobs and --max-memory are for.
"""

from __future__ import annotations

from uuid import UUID

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.engine.operations import Actor, Desk, Outcome
from jobqueue.events import emit
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Worker
from jobqueue.storage import Storage

DONE = "told to drain"


def drain_worker(
    worker: UUID | str, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS
) -> Outcome:
    """Let a worker end, by its identity; telling it twice changes nothing."""
    identity = _parsed(worker)
    desk = Desk(actor, backend)

    def run(storage: Storage) -> str:
        rows = Worker.objects.using(desk.database).filter(pk=identity)
        if not rows.filter(dead=False, draining=False).update(draining=True):
            state = rows.values_list("dead", flat=True).first()
            if state is None:
                return "not found"
            return "skipped: dead" if state else "skipped: already draining"
        name = str(rows.only("name", "host", "pid").get())
        desk.record("drain", 1, target=name[:255], detail={"worker": str(identity)})
        desk.after_commit(lambda: emit("worker.told_to_drain", worker=identity, actor=actor.name))
        return DONE

    return Outcome(DONE, {identity: desk.transact(run)})


def _parsed(worker: UUID | str) -> UUID:
    try:
        return worker if isinstance(worker, UUID) else UUID(worker)
    except (ValueError, AttributeError, TypeError):
        raise InvalidArgument(f"Not the identity of a worker: {worker!r:.100}.") from None
