"""Pruning: small ordered batches in transactions of their own, never in the way of workers."""

from __future__ import annotations

from collections.abc import Callable

from jobqueue.conf import MIN_ATTEMPT_AGE_SECONDS, Options
from jobqueue.storage import Storage

PRUNE_BATCH = 500
"""Jobs deleted in one transaction: short enough that nobody waits for it."""
WORKER_RETENTION_SECONDS = 7 * 86_400.0
"""Rows of dead workers are kept a week, for whoever asks what ran where."""


def prune(
    storage: Storage,
    options: Options,
    should_stop: Callable[[], bool] = lambda: False,
    retention: dict[str, float | None] | None = None,
) -> dict[str, int]:
    """Delete jobs that ended longer ago than their retention; return how many, by state.

    Never a job whose attempts are younger than a day: they are the witness of an unknown COMMIT.
    Stops between two batches when `should_stop` says so.
    """
    pruned: dict[str, int] = {}
    for state, seconds in (retention or options.retention).items():
        if seconds is None:
            continue
        age = max(seconds, MIN_ATTEMPT_AGE_SECONDS)
        pruned[state] = 0
        while not should_stop():
            count = storage.prune(state, age, PRUNE_BATCH)
            pruned[state] += count
            if count < PRUNE_BATCH:
                break
    storage.prune_workers(WORKER_RETENTION_SECONDS)
    return pruned
