"""Rollups on SQLite: one writer at a time, so ids appear in the order in which they were drawn.

Hence there are no gaps: a transaction that rolls back gives its ids back. Attempts are summed in
Python, in small turns, because the write lock is held meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from jobqueue.histogram import character_of
from jobqueue.storage.busy import reads, writes
from jobqueue.storage.rollups import (
    ErrorSums,
    ErrorTally,
    Gap,
    Rolling,
    RollupKey,
    RollupSums,
    Span,
    Tally,
    error_row,
    rollup_row,
    sums_of,
)
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_values import after as later
from jobqueue.storage.sqlite_values import time_of

FAR_SECONDS = 600.0
"""A time to count again that is further ahead was written before the clock stepped back."""


class SQLiteRollups(SQLiteStatements):
    """The protocol's part for rollups."""

    @reads
    def has_uncounted(self, early: bool = False, now: datetime | None = None) -> bool:
        clock = self._clock(now)
        return bool(
            self._rows("look_rolling", early=early, now=clock, far=later(clock, FAR_SECONDS))[0][0]
        )

    @writes
    def hold_rolling[R](
        self, run: Callable[[Rolling], R], early: bool = False, now: datetime | None = None
    ) -> R | None:
        clock = self._clock(now)
        far = later(clock, FAR_SECONDS)
        rows = self._rows("hold_rolling", early=early, now=clock, far=far)
        rows = rows or self._rows("make_rolling")
        return run(Rolling(rows[0][0], [], clock)) if rows else None

    def read_span(self, after: int, limit: int) -> tuple[int, int]:
        count, last = self._rows("read_attempt_span", after=after, limit=limit)[0]
        return count, last or after

    def find_gaps(self, spans: Sequence[Span]) -> list[tuple[int, Span]]:
        """Return none: see the module."""
        return []

    def tally_attempts(self, spans: Sequence[Span], kind: str) -> list[Tally]:
        tallies: dict[tuple[str, ...], list[tuple[float | None, float]]] = {}
        for span in spans:
            rows = self._rows("read_attempts", **span._asdict())
            for queue, task, worker, outcome, due, started, finished in rows:
                start, end = time_of(started), time_of(finished)
                waited = None if due is None else _seconds(time_of(due), start)
                name = (queue, task) if kind == "task" else ("", worker)
                minute = end.replace(second=0, microsecond=0).isoformat()
                times = tallies.setdefault((minute, *name, outcome), [])
                times.append((waited, _seconds(start, end)))
        return [_tally(key, times) for key, times in tallies.items()]

    def tally_errors(self, spans: Sequence[Span], limit: int) -> list[ErrorTally]:
        rows: list[tuple[Any, ...]] = []
        for span in spans:
            rows += self._rows("tally_errors", **span._asdict(), limit=limit)
        return [_error_tally(row) for row in rows]

    def read_rollups(self, keys: Iterable[RollupKey]) -> dict[RollupKey, RollupSums]:
        found = {key: self._rows("read_rollup", **key._asdict()) for key in keys}
        return {key: sums_of(rows[0]) for key, rows in found.items() if rows}

    def write_rollups(self, sums: dict[RollupKey, RollupSums]) -> None:
        self._each("write_rollup", [rollup_row(key, each) for key, each in sums.items()])

    def add_to_error_groups(self, errors: Iterable[ErrorSums]) -> None:
        self._each("add_to_error_group", [error_row(each) for each in errors])

    def save_rolling(
        self,
        attempt_id: int,
        gaps: Sequence[Gap],
        rolled_at: datetime | None,
        not_before: datetime,
    ) -> None:
        self._rows(
            "save_rolling", attempt_id=attempt_id, rolled_at=rolled_at, not_before=not_before
        )

    @writes
    def prune_rollups(self, seconds: int, before: datetime, limit: int) -> int:
        return self._changed("prune_rollups", seconds=seconds, before=before, limit=limit)

    @writes
    def prune_error_groups(self, before: datetime, keep: int, limit: int) -> int:
        return self._changed("prune_error_groups", before=before, keep=keep, limit=limit)


def _tally(key: tuple[str, ...], times: Sequence[tuple[float | None, float]]) -> Tally:
    minute, queue, name, outcome = key
    waits = [waited for waited, _ in times if waited is not None]
    runs = [ran for _, ran in times]
    return Tally(
        datetime.fromisoformat(minute),
        queue,
        name,
        outcome,
        len(times),
        sum(waits),
        sum(runs),
        "".join(map(character_of, waits)),
        "".join(map(character_of, runs)),
    )


def _error_tally(row: Sequence[Any]) -> ErrorTally:
    found = ErrorTally(*row)
    return found._replace(
        minute=time_of(found.minute),
        first_seen=time_of(found.first_seen),
        last_seen=time_of(found.last_seen),
        job_id=UUID(hex=str(found.job_id)),
    )


def _seconds(start: datetime, end: datetime) -> float:
    """Return the seconds between two times; none if the clock stepped back between them."""
    return max((end - start).total_seconds(), 0.0)
