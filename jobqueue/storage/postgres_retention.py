"""Old jobs on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

from jobqueue.payload import SCRUBBED
from jobqueue.storage.postgres_base import PostgresStatements
from jobqueue.storage.records import AgeRule, Look
from jobqueue.storage.retention import next_after, youngest
from jobqueue.storage.statements import statement

_UNSCRUBBED = {
    "columns": ", arguments",
    "condition": "AND s.arguments::text <> %(scrubbed)s",
}
_ANY = {"columns": "", "condition": ""}


class PostgresRetention(PostgresStatements):
    """See `jobqueue.storage.retention.RetentionStorage`."""

    def find_old(
        self,
        rules: Sequence[AgeRule],
        after: UUID,
        window: int,
        limit: int,
        *,
        unscrubbed: bool = False,
    ) -> Look:
        sql = statement(self.vendor, "find_old", **(_UNSCRUBBED if unscrubbed else _ANY))
        ((found, seen, last, all_young),) = self._run(
            sql,
            {
                "rules": json.dumps([rule._asdict() for rule in rules]),
                "youngest": youngest(rules),
                "after": after,
                "window": window,
                "limit": limit,
                "scrubbed": SCRUBBED,
            },
        )
        return Look(found, next_after(found, limit, seen, window, last, bool(all_young)))

    def prune(self, ids: Sequence[UUID], older_than_seconds: float) -> list[str]:
        return [row[0] for row in self._rows("prune_jobs", ids=list(ids), age=older_than_seconds)]

    def scrub_arguments(self, ids: Sequence[UUID], older_than_seconds: float) -> int:
        age = older_than_seconds
        return len(self._rows("scrub_arguments", ids=list(ids), age=age, scrubbed=SCRUBBED))

    def prune_workers(self, older_than_seconds: float) -> int:
        return len(self._rows("prune_workers", age=older_than_seconds))

    def prune_actions(self, limit: int, older_than_seconds: float) -> int:
        return len(self._rows("prune_actions", limit=limit, age=older_than_seconds))
