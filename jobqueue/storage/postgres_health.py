"""Looking at the whole on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from jobqueue.ids import SESSION_PREFIX
from jobqueue.storage.health import Backlog, HorizonHolder, IdleSlot, OpenTransaction, TableState
from jobqueue.storage.postgres_base import PostgresStatements


class PostgresHealth(PostgresStatements):
    """The protocol's part for looking at the whole."""

    def change_mark(self) -> str:
        return str(self._rows("read_change_mark")[0][0])

    def state_counts(self, limit: int) -> dict[str, int]:
        return dict(self._rows("state_counts", limit=limit))

    def estimated_count(self, state: str) -> int | None:
        plan = self._rows("estimate_jobs", state=state)[0][0]
        document = json.loads(plan) if isinstance(plan, str) else plan
        return int(document[0]["Plan"]["Plan Rows"])

    def queue_backlogs(
        self, limit: int, max_queues: int, now: datetime | None = None
    ) -> list[Backlog]:
        rows = self._rows("queue_backlogs", limit=limit, max_queues=max_queues, now=now)
        return [Backlog._make(row) for row in rows]

    def blocked_counts(self, limit: int) -> dict[str, int]:
        return dict(self._rows("blocked_counts", limit=limit))

    def parked_counts(self, tasks: Sequence[str], limit: int) -> dict[str, int]:
        return dict(self._rows("parked_counts", tasks=list(tasks), limit=limit))

    def dead_by_error(self, fingerprints: Sequence[str], limit: int) -> dict[str, int]:
        return dict(self._rows("dead_by_error", fingerprints=list(fingerprints), limit=limit))

    def backlog_ages(self, now: datetime | None = None) -> dict[str, float | None]:
        row = self._rows("backlog_ages", now=now)[0]
        return dict(zip(("oldest_unpromoted", "oldest_unreaped"), row, strict=True))

    def horizon_holder(self) -> HorizonHolder | None:
        rows = self._rows("find_horizon")
        return HorizonHolder._make(rows[0]) if rows else None

    def table_state(self) -> TableState | None:
        rows = self._rows("table_state")
        return TableState._make(rows[0]) if rows else None

    def idle_slots(self) -> list[IdleSlot]:
        return [IdleSlot._make(row) for row in self._rows("idle_slots")]

    def open_transactions(self, seconds: float) -> list[OpenTransaction]:
        rows = self._rows("open_transactions", prefix=SESSION_PREFIX, seconds=seconds)
        return [OpenTransaction(UUID(hex=name), *rest) for name, *rest in rows]
