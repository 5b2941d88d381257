"""A scheduler counts now and then, and nothing of it can stop what else it does."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from django.db import OperationalError

from jobqueue import events
from jobqueue.conf import options_for
from jobqueue.engine.rollups import TURN_SECONDS
from jobqueue.models import Rollup
from jobqueue.runtime import rollups as duty_module
from jobqueue.runtime.rollups import FAILED_PAUSE_SECONDS, RollupDuty
from jobqueue.runtime.scheduler import Scheduler
from jobqueue.storage import Storage
from tests.runtime.clock import Clock
from tests.statistics.making import attempt, record


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(duty_module, "time", fake)
    return fake


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(events, "_subscribers", [lambda event: names.append(event.name)])
    return names


def broken(storage: Storage, error: Exception) -> Storage:
    """Return a storage that fails when it is asked for anything to count."""

    def fail(*args: object) -> bool:
        raise error

    return SimpleNamespace(has_uncounted=fail)  # type: ignore[return-value]


def test_it_counts_within_some_seconds_and_then_rests(storage: Storage, clock: Clock) -> None:
    duty = RollupDuty()
    record(attempt(datetime.now(UTC)))  # what is old might be pruned in the same turn
    clock.now += TURN_SECONDS
    duty.run_once(storage)
    assert Rollup.objects.filter(kind="task", seconds=60).get().succeeded == 1
    record(attempt(datetime.now(UTC)))
    duty.run_once(storage)
    assert Rollup.objects.filter(kind="task", seconds=60).get().succeeded == 1


def test_an_error_is_told_once_and_goes_no_further(
    storage: Storage, clock: Clock, told: list[str]
) -> None:
    duty = RollupDuty()
    bad = broken(storage, ValueError("no such column"))
    for _ in range(3):
        clock.now += FAILED_PAUSE_SECONDS
        duty.run_once(bad)
    assert told == ["rollups.failing"]
    clock.now += FAILED_PAUSE_SECONDS
    duty.run_once(storage)
    assert told == ["rollups.failing", "rollups.recovered"]


def test_a_database_that_is_away_is_the_loops_affair(storage: Storage, clock: Clock) -> None:
    duty = RollupDuty()
    clock.now += TURN_SECONDS
    with pytest.raises(OperationalError):
        duty.run_once(broken(storage, OperationalError("the connection is closed")))


@pytest.mark.parametrize("only_promote", [True, False])
def test_a_scheduler_counts_unless_it_only_promotes(
    storage: Storage, clock: Clock, only_promote: bool
) -> None:
    scheduler = Scheduler("default", options_for("default"), False, only_promote=only_promote)
    record(attempt(datetime.now(UTC)))
    clock.now += TURN_SECONDS
    scheduler.run_once()
    scheduler.reset()
    assert Rollup.objects.exists() is not only_promote
