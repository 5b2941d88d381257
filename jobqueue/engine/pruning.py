"""Pruning by an operator: as `jobqueue.engine.retention`, with its Action row.

Each small batch is a transaction of its own that also counts itself in the Action row: whatever
ends this early, the row says what was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from django.db.models import F
from django.db.models.functions import Now

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import MIN_ATTEMPT_AGE_SECONDS
from jobqueue.engine.operations import Actor, Desk, Outcome
from jobqueue.engine.retention import PRUNE_BATCH, WORKER_RETENTION_SECONDS
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Action, Job
from jobqueue.states import FINISHED
from jobqueue.storage import Storage

Progress = Callable[[int], object]


def prune(
    actor: Actor,
    *,
    older_than: float | None = None,
    states: Iterable[str] | None = None,
    dry_run: bool = False,
    progress: Progress = lambda count: None,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> Outcome:
    """Delete jobs that ended long ago, with their attempts, steps and tags; return how many.

    older_than: seconds since they ended, at least a day; None takes each state's RETENTION, which
    may say that it is kept. states: of succeeded, cancelled, dead; None takes all of them.
    dry_run: only count. progress: called with the number deleted so far, after each batch.
    """
    desk = Desk(actor, backend)
    ages = _ages(desk, older_than, states)
    if dry_run:
        counts = {state: _count(desk, state, age) for state, age in ages.items()}
        return Outcome("pruned", given_counts={"would be pruned": sum(counts.values())})
    count = _Batches(desk, progress).delete(ages)
    desk.storage().prune_workers(WORKER_RETENTION_SECONDS)
    return Outcome("pruned", given_counts={"pruned": count})


def _ages(
    desk: Desk, older_than: float | None, states: Iterable[str] | None
) -> Mapping[str, float]:
    chosen = sorted(FINISHED) if states is None else list(states)
    unknown = [state for state in chosen if state not in FINISHED]
    if unknown:
        raise InvalidArgument(
            f"Only jobs that have ended are pruned: {', '.join(sorted(FINISHED))}, "
            f"not {', '.join(unknown)}."
        )
    if older_than is not None:
        if older_than < MIN_ATTEMPT_AGE_SECONDS:
            raise InvalidArgument(
                "Jobs are kept for at least a day: their attempts tell a worker that lost its "
                "connection whether its COMMIT succeeded."
            )
        return dict.fromkeys(chosen, older_than)
    kept = desk.options.retention
    return {
        state: max(seconds, MIN_ATTEMPT_AGE_SECONDS)
        for state in chosen
        if (seconds := kept[state]) is not None
    }


def _count(desk: Desk, state: str, age_seconds: float) -> int:
    ended_before = Now() - timedelta(seconds=age_seconds)
    jobs = Job.objects.using(desk.database)
    return jobs.filter(state=state, finished_at__lt=ended_before).count()


class _Batches:
    """Deletes batch by batch; the first one makes the Action row, each adds to it."""

    def __init__(self, desk: Desk, progress: Progress) -> None:
        self._desk = desk
        self._progress = progress
        self._action: Action | None = None
        self._count = 0

    def delete(self, ages: Mapping[str, float]) -> int:
        """Return how many jobs were deleted."""
        for state, age in ages.items():
            while self._batch(state, age, ages) == PRUNE_BATCH:
                pass
        return self._count

    def _batch(self, state: str, age: float, ages: Mapping[str, float]) -> int:
        action, deleted = self._desk.transact(lambda storage: self._run(storage, state, age, ages))
        if deleted:
            self._action = action
            self._count += deleted
            self._progress(self._count)
        return deleted

    def _run(
        self, storage: Storage, state: str, age: float, ages: Mapping[str, float]
    ) -> tuple[Action | None, int]:
        deleted = storage.prune(state, age, PRUNE_BATCH)
        if not deleted:
            return None, 0
        if self._action is None:
            detail = {"older_than_seconds": dict(ages), "backend": self._desk.backend}
            return self._desk.record("prune", deleted, target="jobs", detail=detail), deleted
        actions = Action.objects.using(self._desk.database).filter(pk=self._action.pk)
        actions.update(count=F("count") + deleted)
        return self._action, deleted
