"""Old jobs on SQLite: looked for without a lock, changed in one short transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from jobqueue.payload import SCRUBBED
from jobqueue.storage.busy import reads, writes
from jobqueue.storage.records import AgeRule, Look
from jobqueue.storage.retention import next_after, youngest
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_values import after as moved
from jobqueue.storage.sqlite_values import time_text

_HISTORY = ("attempts", "steps", "tags", "progress", "lines")
"""What is pruned with a job."""


class SQLiteRetention(SQLiteStatements):
    """See `jobqueue.storage.retention.RetentionStorage`; `prune_workers` is with the workers."""

    @reads
    def find_old(
        self,
        rules: Sequence[AgeRule],
        after: UUID,
        window: int,
        limit: int,
        *,
        unscrubbed: bool = False,
    ) -> Look:
        clock = self._clock()
        given = {"after": after, "window": window}
        rows = self._rows(
            "find_old",
            **given,
            rules=json.dumps([_with_time(rule, clock) for rule in rules]),
            limit=limit,
            scrubbed=SCRUBBED if unscrubbed else None,
        )
        found = [UUID(hex=row[0]) for row in rows]
        newest = _before(youngest(rules), clock)
        ((seen, last, oldest),) = self._rows("read_window", **given)
        all_young = newest is None or (oldest is not None and oldest > newest)
        last_id = None if last is None else UUID(hex=last)
        return Look(found, next_after(found, limit, seen, window, last_id, all_young))

    @writes
    def prune(self, ids: Sequence[UUID], older_than_seconds: float) -> list[str]:
        before = moved(self._clock(), -older_than_seconds)
        rows = self._rows("prune_jobs", ids=list(ids), before=before)
        for name in _HISTORY:
            self._rows(f"prune_{name}", ids=[row[0] for row in rows])
        return [row[1] for row in rows]

    @writes
    def scrub_arguments(self, ids: Sequence[UUID], older_than_seconds: float) -> int:
        before = moved(self._clock(), -older_than_seconds)
        return self._changed("scrub_arguments", ids=list(ids), before=before, scrubbed=SCRUBBED)

    def prune_actions(self, limit: int, older_than_seconds: float) -> int:
        before = moved(self._clock(), -older_than_seconds)
        return self._prune_actions(limit, before) if self._find_old_action(before) else 0

    @reads
    def _find_old_action(self, before: datetime) -> bool:
        return bool(self._rows("find_old_action", before=before))

    @writes
    def _prune_actions(self, limit: int, before: datetime) -> int:
        return self._changed("prune_actions", limit=limit, before=before)


def _with_time(rule: AgeRule, clock: datetime) -> dict[str, str | None]:
    before = None if rule.seconds is None else _before(rule.seconds, clock)
    return {"state": rule.state, "queue": rule.queue, "before": before}


def _before(seconds: float, clock: datetime) -> str | None:
    """Return the time, as SQLite holds it, before which something is old; None for never."""
    return None if seconds == float("inf") else time_text(moved(clock, -seconds))
