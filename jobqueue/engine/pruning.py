"""Pruning by an operator: as `jobqueue.engine.retention`, with its Action row.

Each small batch is a transaction of its own that also counts itself in the Action row: whatever
ends this early, the row says what was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Now

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import MIN_ATTEMPT_AGE_SECONDS
from jobqueue.engine.counts import Count, capped_count
from jobqueue.engine.operations import Actor, Desk, Outcome
from jobqueue.engine.retention import WORKER_RETENTION_SECONDS, rules_of, walk
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Action, Job
from jobqueue.states import FINISHED
from jobqueue.storage import Storage
from jobqueue.storage.records import AgeRule
from jobqueue.storage.retention import youngest

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
    dry_run: only count, as far as `COUNT_LIMIT`. progress: called with the number deleted so far,
    after each batch.
    """
    desk = Desk(actor, backend)
    rules = _rules(desk, older_than, states)
    if dry_run:
        found = _count(desk, rules)
        more = "or more " * (found.relation != "eq")
        return Outcome("pruned", given_counts={f"{more}would be pruned": found.value})
    count = _Batches(desk, progress, rules).delete()
    desk.storage().prune_workers(WORKER_RETENTION_SECONDS)
    return Outcome("pruned", given_counts={"pruned": count})


def _rules(desk: Desk, older_than: float | None, states: Iterable[str] | None) -> list[AgeRule]:
    chosen = sorted(FINISHED) if states is None else list(states)
    unknown = [state for state in chosen if state not in FINISHED]
    if unknown:
        raise InvalidArgument(
            f"Only jobs that have ended are pruned: {', '.join(sorted(FINISHED))}, "
            f"not {', '.join(unknown)}."
        )
    if older_than is None:
        return [rule for rule in rules_of(desk.options.retention) if rule.state in chosen]
    if older_than < MIN_ATTEMPT_AGE_SECONDS:
        raise InvalidArgument(
            "Jobs are kept for at least a day: their attempts tell a worker that lost its "
            "connection whether its COMMIT succeeded."
        )
    return [AgeRule(state, None, older_than) for state in chosen]


def _count(desk: Desk, rules: Sequence[AgeRule]) -> Count:
    """Return how many jobs the rules find now; those of a queue go before those of a state.

    Read in the order of ids, where old jobs come first.
    """
    chosen = Q(pk__in=[])
    for rule in rules:
        if rule.seconds is None:
            continue
        ended_before = Now() - timedelta(seconds=rule.seconds)
        found = Q(state=rule.state, finished_at__lt=ended_before)
        if rule.queue is None:
            found &= ~Q(queue__in=[r.queue for r in rules if r.queue and r.state == rule.state])
        else:
            found &= Q(queue=rule.queue)
        chosen |= found
    return capped_count(Job.objects.using(desk.database).filter(chosen).order_by("id"))


class _Batches:
    """Deletes batch by batch; the first one makes the Action row, each adds to it."""

    def __init__(self, desk: Desk, progress: Progress, rules: Sequence[AgeRule]) -> None:
        self._desk = desk
        self._progress = progress
        self._rules = rules
        self._action: Action | None = None
        self._count = 0

    def delete(self) -> int:
        """Return how many jobs were deleted."""
        for ids in walk(self._desk.storage(), self._rules):
            self._action, deleted = self._desk.transact(partial(self._run, ids=ids))
            if deleted:
                self._count += deleted
                self._progress(self._count)
        return self._count

    def _run(self, storage: Storage, ids: Sequence[UUID]) -> tuple[Action | None, int]:
        deleted = len(storage.prune(ids, youngest(self._rules)))
        if not deleted:
            return self._action, 0
        if self._action is None:
            detail = {"older_than_seconds": _described(self._rules), "backend": self._desk.backend}
            return self._desk.record("prune", deleted, target="jobs", detail=detail), deleted
        actions = Action.objects.using(self._desk.database).filter(pk=self._action.pk)
        actions.update(count=F("count") + deleted)
        return self._action, deleted


def _described(rules: Sequence[AgeRule]) -> dict[str, float]:
    """Return the rules that delete, as the record keeps them: by state, or "state in queue"."""
    return {
        rule.state if rule.queue is None else f"{rule.state} in {rule.queue}": rule.seconds
        for rule in rules
        if rule.seconds is not None
    }
