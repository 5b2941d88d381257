"""Rollups on PostgreSQL: the server sums, and hands over one row a group.

Histograms come as text with a character an attempt, which Python counts: grouping by bucket as
well, or a sum for each of ninety buckets, takes several times as long (docs/adr/0009).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from django.db import OperationalError

from jobqueue.histogram import BOUNDS, FIRST_CHARACTER
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.errors import sqlstate
from jobqueue.storage.postgres_base import PostgresStatements
from jobqueue.storage.rollups import (
    ErrorSums,
    ErrorTally,
    Gap,
    Rolling,
    RollupKey,
    RollupSums,
    Span,
    Tally,
    decoded_gaps,
    error_row,
    rollup_row,
    sums_of,
)
from jobqueue.storage.statements import statement

_NAMES = {
    "task": {"queue": "a.queue", "named": "a.task"},
    "worker": {"queue": "''", "named": "a.worker"},
}
"""What attempts are summed by."""
_SERIALIZATION_FAILURE = "40001"


class PostgresRollups(PostgresStatements):
    """The protocol's part for rollups."""

    def has_uncounted(self, early: bool = False, now: datetime | None = None) -> bool:
        rows = self._rows("look_rolling", early=early, now=now)
        if not rows:
            return False
        has_uncounted, is_ready = rows[0]
        if has_uncounted and not is_ready:
            self._rows("make_rolling")
        return bool(has_uncounted)

    def hold_rolling[R](
        self, run: Callable[[Rolling], R], early: bool = False, now: datetime | None = None
    ) -> R | None:
        try:
            with transaction_on(self.connection):
                if not self.connection.in_atomic_block:  # there it is somebody else's to decide
                    self._rows("set_repeatable_read")
                rows = self._rows("hold_rolling", early=early, now=now)
                if not rows:
                    return None
                attempt_id, gaps, clock = rows[0][:3]
                return run(Rolling(attempt_id, decoded_gaps(json.loads(gaps)), clock))
        except OperationalError as error:
            if sqlstate(error) == _SERIALIZATION_FAILURE:
                return None  # somebody else has counted since our snapshot
            raise

    def read_span(self, after: int, limit: int) -> tuple[int, int]:
        count, last = self._rows("read_attempt_span", after=after, limit=limit)[0]
        return count, last or after

    def find_gaps(self, spans: Sequence[Span]) -> list[tuple[int, Span]]:
        rows = self._rows("find_attempt_gaps", **_arrays(spans))
        return [(number - 1, Span(low, high)) for number, low, high in rows]

    def tally_attempts(self, spans: Sequence[Span], kind: str) -> list[Tally]:
        sql = statement(self.vendor, "tally_attempts", **_NAMES[kind])
        values = {"bounds": list(BOUNDS), "first": FIRST_CHARACTER, **_arrays(spans)}
        tallies = [Tally._make(row) for row in self._run(sql, values)]
        if kind == "worker":
            return [each._replace(name=each.name.replace("-", "")) for each in tallies]
        return tallies

    def tally_errors(self, spans: Sequence[Span], limit: int) -> list[ErrorTally]:
        rows = self._rows("tally_errors", limit=limit, **_arrays(spans))
        return [ErrorTally(*row) for row in rows]

    def read_rollups(self, keys: Iterable[RollupKey]) -> dict[RollupKey, RollupSums]:
        rows = self._rows(
            "read_rollups", keys=json.dumps([key._asdict() for key in keys], default=str)
        )
        return {RollupKey(*row[:5]): sums_of(row[5:]) for row in rows}

    def write_rollups(self, sums: dict[RollupKey, RollupSums]) -> None:
        rows = [rollup_row(key, each) for key, each in sums.items()]
        self._rows("write_rollups", rows=json.dumps(rows, default=str))

    def add_to_error_groups(self, errors: Iterable[ErrorSums]) -> None:
        rows = [error_row(each) for each in errors]
        self._rows("add_to_error_groups", rows=json.dumps(rows, default=str))

    def save_rolling(
        self,
        attempt_id: int,
        gaps: Sequence[Gap],
        rolled_at: datetime | None,
        not_before: datetime,
    ) -> None:
        self._rows(
            "save_rolling",
            attempt_id=attempt_id,
            gaps=json.dumps(gaps),
            rolled_at=rolled_at,
            not_before=not_before,
        )

    def prune_rollups(self, seconds: int, before: datetime, limit: int) -> int:
        return len(self._rows("prune_rollups", seconds=seconds, before=before, limit=limit))

    def prune_error_groups(self, before: datetime, keep: int, limit: int) -> int:
        return len(self._rows("prune_error_groups", before=before, keep=keep, limit=limit))


def _arrays(spans: Sequence[Span]) -> dict[str, list[int]]:
    return {"lows": [span.low for span in spans], "highs": [span.high for span in spans]}
