"""How fast killed work went on, and other times as percentiles."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from project.demo.facts import AttemptFact


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest of `values` that at least `percent` % of them do not exceed.

    Nearest rank: always a value that was seen. Raise ValueError without values.
    """
    if not values:
        raise ValueError("There is no percentile of nothing.")
    rank = -(-len(values) * percent // 100)  # rounded up
    return sorted(values)[max(1, int(rank)) - 1]


def recovery_seconds(
    attempts: Sequence[AttemptFact], killed_at: dict[int, datetime]
) -> list[float]:
    """Return, for each job that a kill interrupted, the time from the kill to its next start.

    killed_at: when each process id was killed. Attempts lost otherwise (a frozen worker) are
    left out: they measure the lease.
    """
    starts: dict[UUID, list[datetime]] = defaultdict(list)
    for attempt in attempts:
        starts[attempt.job_id].append(attempt.started_at)
    seconds = []
    for attempt in attempts:
        kill = killed_at.get(attempt.pid or 0)
        if attempt.outcome != "lost" or kill is None:
            continue
        later = [start for start in starts[attempt.job_id] if start > kill]
        if later:
            seconds.append((min(later) - kill).total_seconds())
    return seconds


def interrupted_jobs(attempts: Sequence[AttemptFact]) -> int:
    """Return how many jobs lost their worker at least once while it ran them."""
    return len({attempt.job_id for attempt in attempts if attempt.outcome == "lost"})
