"""Percentiles, and the time from a kill to the next start of what it interrupted."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from project.demo.facts import AttemptFact
from project.demo.recovery import interrupted_jobs, percentile, recovery_seconds

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 10), (50, 50), (51, 60), (90, 90), (95, 100), (100, 100)]
)
def test_a_percentile_is_the_nearest_value_that_was_seen(percent, value):
    assert percentile([100, 10, 90, 20, 80, 30, 70, 40, 60, 50], percent) == value


def test_there_is_no_percentile_of_nothing():
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)


def test_recovery_lasts_from_the_kill_to_the_first_start_after_it():
    attempts = [
        attempt(1, 1, "lost", start=-1, pid=100),
        attempt(1, 3, "succeeded", start=9),
        attempt(1, 2, "failed", start=2),
    ]
    assert recovery_seconds(attempts, {100: NOON}) == [2.0]


def test_a_job_killed_twice_counts_twice():
    attempts = [
        attempt(1, 1, "lost", start=-1, pid=100),
        attempt(1, 2, "lost", start=1, pid=200),
        attempt(1, 3, "succeeded", start=6),
    ]
    kills = {100: NOON, 200: NOON + timedelta(seconds=3)}
    assert recovery_seconds(attempts, kills) == [1.0, 3.0]
    assert interrupted_jobs(attempts) == 1


def test_what_a_frozen_worker_lost_measures_the_lease_and_is_left_out():
    attempts = [
        attempt(1, 1, "lost", start=-1, pid=300),
        attempt(1, 2, "succeeded", start=5),
        attempt(2, 1, "lost", start=-1, pid=None),
    ]
    assert recovery_seconds(attempts, {100: NOON}) == []


def test_failures_are_not_crashes():
    attempts = [attempt(1, 1, "failed", start=-1, pid=100), attempt(1, 2, "succeeded", start=5)]
    assert recovery_seconds(attempts, {100: NOON}) == []
    assert interrupted_jobs(attempts) == 0


def attempt(
    job: int, number: int, outcome: str, *, start: float, pid: int | None = 1
) -> AttemptFact:
    started = NOON + timedelta(seconds=start)
    return AttemptFact(UUID(int=job), number, outcome, started, started, pid)
