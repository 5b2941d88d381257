"""Schedules and ticks on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime

from jobqueue.conf import COMMIT_IDLE_TIMEOUT
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.postgres_base import PostgresStatements
from jobqueue.storage.schedules import (
    COUNTED_JOBS,
    MAX_READ,
    TICKS_KEPT,
    Move,
    NewTick,
    ScheduleRow,
)

LOCK_WAIT_SECONDS = 2.0


class PostgresSchedules(PostgresStatements):
    """See `jobqueue.storage.schedules.ScheduleStorage`."""

    def read_schedules(
        self, backends: Sequence[str], *, everything: bool = False, now: datetime | None = None
    ) -> tuple[datetime, list[ScheduleRow]]:
        rows = self._rows(
            "read_schedules",
            backends=list(backends),
            everything=everything,
            now=now,
            limit=MAX_READ,
        )
        clock = rows[0][-1] if rows else self.clock() if now is None else now
        return clock, [ScheduleRow(*row[:-1]) for row in rows]

    def move_schedule(self, row: ScheduleRow, move: Move, now: datetime | None = None) -> bool:
        # In a savepoint (a TestCase's) no COMMIT follows: the limit would be the test's.
        limit = None if self.connection.savepoint_ids else COMMIT_IDLE_TIMEOUT
        moved = self._rows(
            "move_schedule",
            id=row.id,
            version=row.version,
            enabled=row.enabled,
            seen_plan=row.plan,
            seen_tick=row.last_tick,
            **move._asdict(),
            now=now,
            idle_timeout=limit,
        )
        return bool(moved)

    def live_of_schedule(self, name: str) -> int:
        return int(self._rows("live_of_schedule", name=name, most=COUNTED_JOBS)[0][0])

    def insert_ticks(
        self, schedule: int, ticks: Sequence[NewTick], now: datetime | None = None
    ) -> None:
        rows = [
            {
                "tick": tick.tick.isoformat(),
                "outcome": tick.outcome,
                "job_id": None if tick.job_id is None else tick.job_id.hex,
                "missed": tick.missed,
            }
            for tick in ticks
        ]
        self._rows("insert_ticks", schedule=schedule, rows=json.dumps(rows), now=now)
        self._rows("drop_ticks", schedule=schedule, kept=TICKS_KEPT)

    def admit_overlapping(self, limit: int, now: datetime | None = None) -> list[str]:
        return [row[0] for row in self._rows("admit_overlapping", limit=limit, now=now)]

    def in_one[R](self, run: Callable[[], R]) -> R:
        if self.connection.in_atomic_block:
            return run()
        with transaction_on(self.connection):
            self.begin_operation(LOCK_WAIT_SECONDS)
            return run()
