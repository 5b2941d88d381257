"""Schedules and ticks on SQLite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from jobqueue.storage.busy import immediate_on, is_foreign, persistently, reads, writes
from jobqueue.storage.schedules import (
    COUNTED_JOBS,
    MAX_READ,
    TICKS_KEPT,
    Move,
    NewTick,
    ScheduleRow,
)
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_values import optional_time

_TIMES = ("at", "start_at", "end_at", "last_tick", "look_at")


class SQLiteSchedules(SQLiteStatements):
    """See `jobqueue.storage.schedules.ScheduleStorage`."""

    @reads
    def read_schedules(
        self, backends: Sequence[str], *, everything: bool = False, now: datetime | None = None
    ) -> tuple[datetime, list[ScheduleRow]]:
        clock = self._clock(now)
        rows = self._rows(
            "read_schedules",
            backends=list(backends),
            everything=everything,
            now=clock,
            limit=MAX_READ,
        )
        return clock, [_schedule_of(row) for row in rows]

    @writes
    def move_schedule(self, row: ScheduleRow, move: Move, now: datetime | None = None) -> bool:
        changed = self._changed(
            "move_schedule",
            id=row.id,
            version=row.version,
            enabled=row.enabled,
            seen_plan=row.plan,
            seen_tick=row.last_tick,
            **move._asdict(),
            now=self._clock(now),
        )
        return bool(changed)

    @reads
    def live_of_schedule(self, name: str) -> int:
        return int(self._rows("live_of_schedule", name=name, most=COUNTED_JOBS)[0][0])

    @writes
    def insert_ticks(
        self, schedule: int, ticks: Sequence[NewTick], now: datetime | None = None
    ) -> None:
        clock = self._clock(now)
        for tick in ticks:
            self._rows(
                "insert_tick",
                schedule=schedule,
                tick=tick.tick,
                now=clock,
                outcome=tick.outcome,
                job_id=tick.job_id,
                missed=tick.missed,
            )
        self._rows("drop_ticks", schedule=schedule, kept=TICKS_KEPT)

    def admit_overlapping(self, limit: int, now: datetime | None = None) -> list[str]:
        return self._admit_overlapping(limit, now) if self._find_overlapping(limit) else []

    @writes
    def _admit_overlapping(self, limit: int, now: datetime | None) -> list[str]:
        ids = self._find_overlapping(limit)
        rows = self._rows("admit_overlapping", ids=ids, now=self._clock(now))
        return [row[0] for row in rows]

    @reads
    def _find_overlapping(self, limit: int) -> list[str]:
        return [row[0] for row in self._rows("find_overlapping", limit=limit)]

    def in_one[R](self, run: Callable[[], R]) -> R:
        if is_foreign(self.connection):
            return run()

        def once() -> R:
            with immediate_on(self.connection):
                return run()

        return persistently(once)


def _schedule_of(row: tuple[Any, ...]) -> ScheduleRow:
    """Return a row as a schedule; what is no time there is named, and no error of the others."""
    found = ScheduleRow(*row)
    found = found._replace(enabled=bool(found.enabled))
    times: dict[str, datetime | None] = {}
    problem = ""
    for name in _TIMES:
        try:
            times[name] = optional_time(getattr(found, name))
        except (ValueError, TypeError, AttributeError, AssertionError):
            times[name] = None
            problem = f"{name}: {getattr(found, name)!r:.80} is not a time"
    return found._replace(**times, problem=problem)  # type: ignore[arg-type]
