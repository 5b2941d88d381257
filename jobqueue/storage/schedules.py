"""Schedules and ticks, as methods of a storage.

Schedulers read schedules in any number and settle each by compare-and-set: `move_schedule`
changes a row only if it is still what was read (its version, its plan, its last tick). In the
transaction that makes a tick's job it is the first statement, so that of any number of schedulers
one makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

OVERLAP = "overlap"
"""Why a job is blocked that waits until earlier jobs of its schedule have ended."""
MAX_READ = 2_000
"""Schedules that one look reads; more would keep it from its other work."""
TICKS_KEPT = 1_000
"""Tick rows kept of each schedule: its history, which nothing depends on."""
COUNTED_JOBS = 1_000
"""Live jobs of a schedule that are counted: enough to say that it is crowded."""


class ScheduleRow(NamedTuple):
    """A schedule as its row says. problem: why the row itself could not be read."""

    id: int
    name: str
    backend: str
    source: str
    task: str
    arguments: str
    queue_name: str
    priority: int | None
    enabled: bool
    cron: str
    every_seconds: int | None
    at: datetime | None
    time_zone: str
    start_at: datetime | None
    end_at: datetime | None
    missed: str
    missed_limit: int
    overlap: str
    jitter_seconds: int
    plan: str
    last_tick: datetime | None
    look_at: datetime | None
    error: str
    version: int
    problem: str = ""


class Move(NamedTuple):
    """What a schedule's row becomes: settled up to last_tick, looked at again at look_at."""

    plan: str
    last_tick: datetime | None
    look_at: datetime | None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTick:
    """A tick row to insert; see `jobqueue.models.tick` for the outcomes."""

    tick: datetime
    outcome: str
    job_id: UUID | None = None
    missed: int = 0


class ScheduleStorage:
    """The part of the protocol about schedules."""

    def read_schedules(
        self, backends: Sequence[str], *, everything: bool = False, now: datetime | None = None
    ) -> tuple[datetime, list[ScheduleRow]]:
        """Return the time on the database's clock, and the schedules to look at by then.

        everything: also those that are not due or not enabled.
        """
        raise NotImplementedError

    def move_schedule(self, row: ScheduleRow, move: Move, now: datetime | None = None) -> bool:
        """Settle a schedule if it is still as `row` says and nobody holds it; return whether.

        Its last tick never moves back. In a transaction the row stays locked, and the session is
        ended if it then sits idle: a frozen scheduler must not keep the others from it.
        """
        raise NotImplementedError

    def live_of_schedule(self, name: str) -> int:
        """Return how many jobs of a schedule have not ended, counted up to `COUNTED_JOBS`."""
        raise NotImplementedError

    def insert_ticks(
        self, schedule: int, ticks: Sequence[NewTick], now: datetime | None = None
    ) -> None:
        """Write a schedule's ticks down, and drop those beyond its newest `TICKS_KEPT`."""
        raise NotImplementedError

    def admit_overlapping(self, limit: int, now: datetime | None = None) -> list[str]:
        """Let the first job of each schedule go on that waits for earlier ones, if they have ended.

        Return the queue of each.
        """
        raise NotImplementedError

    def in_one[R](self, run: Callable[[], R]) -> R:
        """Return ``run()`` from one transaction of this connection, the open one if there is one.

        Nothing waits in it for a lock for long.
        """
        raise NotImplementedError
