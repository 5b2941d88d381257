"""Old jobs: deleted after their retention, their arguments forgotten earlier where asked for.

One walk over the jobs for all rules, in small batches of a transaction each, never in the way of
workers; it stops between two batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from jobqueue.conf import MIN_ATTEMPT_AGE_SECONDS, QUEUES_KEY, Options
from jobqueue.storage import Storage
from jobqueue.storage.records import AgeRule
from jobqueue.storage.retention import FIRST_ID, youngest

PRUNE_BATCH = 500
"""Rows deleted in one transaction: short enough that nobody waits for it."""
WALK_WINDOW = 5_000
"""Jobs that one look of a walk reads: some milliseconds, however many are kept."""
WORKER_RETENTION_SECONDS = 7 * 86_400.0
"""Rows of dead workers are kept a week, for whoever asks what ran where."""

Retention = Mapping[str, Any]
"""Seconds by state, and by queue and state under "queues", as the option RETENTION."""


def never() -> bool:
    """Return False: nobody wants a walk to stop."""
    return False


def prune(
    storage: Storage,
    options: Options,
    should_stop: Callable[[], bool] = never,
    retention: Retention | None = None,
) -> dict[str, int]:
    """Delete jobs that ended longer ago than their retention; return how many, by state.

    Never a job whose attempts are younger than a day: they are the witness of an unknown COMMIT.
    Stops between two batches when `should_stop` says so.
    """
    rules = rules_of(options.retention if retention is None else retention)
    pruned: Counter[str] = Counter({r.state: 0 for r in rules if r.seconds is not None})
    for ids in walk(storage, rules, should_stop):
        pruned.update(storage.prune(ids, youngest(rules)))
    storage.prune_workers(WORKER_RETENTION_SECONDS)
    return dict(pruned)


def scrub(storage: Storage, options: Options, should_stop: Callable[[], bool] = never) -> int:
    """Forget the arguments of jobs that succeeded or were cancelled long enough ago.

    Not of dead letters, which may be requeued; one that is discarded is cancelled. Return how many.
    """
    seconds = options.scrub_arguments
    if seconds is None:
        return 0
    rules = [AgeRule(state, None, seconds) for state in ("succeeded", "cancelled")]
    batches = walk(storage, rules, should_stop, unscrubbed=True)
    return sum(storage.scrub_arguments(ids, seconds) for ids in batches)


def prune_requests(storage: Storage, should_stop: Callable[[], bool] = never) -> int:
    """Delete idempotency keys whose time is over, batch by batch; return how many."""
    return _in_batches(lambda: storage.prune_requests(PRUNE_BATCH), should_stop)


def prune_actions(
    storage: Storage, options: Options, should_stop: Callable[[], bool] = never
) -> int:
    """Delete what was written down of operators longer ago than ACTION_RETENTION, batch by batch.

    Return how many.
    """
    seconds = options.action_retention
    if seconds is None:
        return 0
    return _in_batches(lambda: storage.prune_actions(PRUNE_BATCH, seconds), should_stop)


def rules_of(retention: Retention) -> list[AgeRule]:
    """Return the rules of a retention; what it keeps has one, too."""
    rules = [
        AgeRule(state, None, _at_least_a_day(seconds))
        for state, seconds in retention.items()
        if state != QUEUES_KEY
    ]
    for queue, states in retention.get(QUEUES_KEY, {}).items():
        rules += [AgeRule(state, queue, _at_least_a_day(s)) for state, s in states.items()]
    return rules


def seconds_kept(retention: Retention, state: str, queue: str) -> float | None:
    """Return how long jobs of a queue are kept after they ended in `state`; None: for good."""
    own = retention.get(QUEUES_KEY, {}).get(queue, {})
    return _at_least_a_day(own[state] if state in own else retention[state])


def walk(
    storage: Storage,
    rules: Sequence[AgeRule],
    should_stop: Callable[[], bool] = never,
    *,
    unscrubbed: bool = False,
) -> Iterator[list[UUID]]:
    """Yield what the rules find, in batches, from the oldest job to the first that is too young."""
    after: UUID | None = FIRST_ID if any(rule.seconds is not None for rule in rules) else None
    while after is not None and not should_stop():
        found, after = storage.find_old(
            rules, after, WALK_WINDOW, PRUNE_BATCH, unscrubbed=unscrubbed
        )
        if found:
            yield found


def _in_batches(prune_batch: Callable[[], int], should_stop: Callable[[], bool]) -> int:
    """Prune until a batch is not full, or somebody wants to stop; return how many went."""
    pruned = 0
    while not should_stop():
        count = prune_batch()
        pruned += count
        if count < PRUNE_BATCH:
            break
    return pruned


def _at_least_a_day(seconds: float | None) -> float | None:
    return None if seconds is None else max(seconds, MIN_ATTEMPT_AGE_SECONDS)
