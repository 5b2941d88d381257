"""Looking at the whole on SQLite, which keeps no dead rows and has no sessions or slots."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from jobqueue.storage.busy import reads
from jobqueue.storage.health import Backlog
from jobqueue.storage.sqlite_values import time_of
from jobqueue.storage.sqlite_workers import SQLiteWorkers


class SQLiteHealth(SQLiteWorkers):
    """The protocol's part for looking at the whole."""

    @reads
    def change_mark(self) -> str:
        return str(self._rows("read_change_mark")[0][0])

    @reads
    def state_counts(self, limit: int) -> dict[str, int]:
        return dict(self._rows("state_counts", limit=limit))

    @reads
    def queue_backlogs(
        self, limit: int, max_queues: int, now: datetime | None = None
    ) -> list[Backlog]:
        clock = self._clock(now)
        rows = self._rows("queue_backlogs", limit=limit, max_queues=max_queues)
        return [Backlog(queue, ready, _age(oldest, clock) or 0.0) for queue, ready, oldest in rows]

    @reads
    def blocked_counts(self, limit: int) -> dict[str, int]:
        return dict(self._rows("blocked_counts", limit=limit))

    @reads
    def parked_counts(self, tasks: Sequence[str], limit: int) -> dict[str, int]:
        return dict(self._rows("parked_counts", tasks=list(tasks), limit=limit))

    @reads
    def dead_by_error(self, fingerprints: Sequence[str], limit: int) -> dict[str, int]:
        return dict(self._rows("dead_by_error", fingerprints=list(fingerprints), limit=limit))

    @reads
    def backlog_ages(self, now: datetime | None = None) -> dict[str, float | None]:
        clock = self._clock(now)
        gone = [
            max((clock - time_of(since)).total_seconds(), 0.0)
            for worker, dead, since in self._rows("list_holders")
            if dead or not self._is_alive(UUID(hex=worker))
        ]
        return {
            "oldest_unpromoted": _age(self._rows("backlog_ages", now=clock)[0][0], clock),
            "oldest_unreaped": max(gone, default=None),
        }


def _age(since: str | None, clock: datetime) -> float | None:
    return None if since is None else (clock - time_of(since)).total_seconds()
