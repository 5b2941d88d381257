"""The protocol's part for rollups: what was not counted yet, its sums, and the rows they go to.

All of it but the look and the pruning happens inside `hold_rolling`: one transaction that holds
the only row of `Rolling` and reads the attempts in one snapshot. So whoever counts is alone,
nothing appears while it counts, and counts and the place up to which it counted are committed
together or not at all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from jobqueue.histogram import Histogram, dump, load
from jobqueue.payload import normalized_message
from jobqueue.states import Outcome


class Span(NamedTuple):
    """Ids of attempts, both ends included."""

    low: int
    high: int


class Gap(NamedTuple):
    """Ids that were drawn and had no row yet: of transactions that had not ended, or never will.

    since: Unix time at which it was first seen.
    """

    low: int
    high: int
    since: float


class Rolling(NamedTuple):
    """How far the counting has come. now: the database's time at which this turn began."""

    attempt_id: int
    gaps: Sequence[Gap]
    now: datetime


class Tally(NamedTuple):
    """The attempts of one task in a queue, or one worker, that ended in one minute and one way.

    The sums are of seconds. waits, runs: the buckets of all of them, a character each (see
    `jobqueue.histogram`); those without a due time have no wait.
    """

    minute: datetime
    queue: str
    name: str
    outcome: str
    attempts: int
    wait_seconds: float
    run_seconds: float
    waits: str
    runs: str


class ErrorTally(NamedTuple):
    """The attempts that ended in one minute with alike errors and one outcome; the newest."""

    minute: datetime
    fingerprint: str
    outcome: str
    attempts: int
    first_seen: datetime
    last_seen: datetime
    error_class: str
    error_message: str
    job_id: UUID
    task: str
    queue: str


class RollupKey(NamedTuple):
    """What a rollup is of; kind and name as in the model."""

    seconds: int
    kind: str
    at: datetime
    queue: str
    name: str


@dataclass(slots=True)
class RollupSums:
    """What a rollup holds; `outcomes` counts attempts by their outcome."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wait_seconds: float = 0.0
    run_seconds: float = 0.0
    waits: Histogram = field(default_factory=Histogram)
    runs: Histogram = field(default_factory=Histogram)

    def add(self, other: RollupSums) -> None:
        """Add another rollup's sums."""
        self.outcomes.update(other.outcomes)
        self.wait_seconds += other.wait_seconds
        self.run_seconds += other.run_seconds
        self.waits.update(other.waits)
        self.runs.update(other.runs)


@dataclass(slots=True)
class ErrorSums:
    """What is new about an error group."""

    newest: ErrorTally
    attempts: int
    first_seen: datetime


class RollupsProtocol:
    """What counting asks of a database."""

    def has_uncounted(self, early: bool = False, now: datetime | None = None) -> bool:
        """Return whether attempts wait to be counted and it is time; reads two index entries.

        early: whether it is time or not.
        """
        raise NotImplementedError

    def hold_rolling[R](
        self, run: Callable[[Rolling], R], early: bool = False, now: datetime | None = None
    ) -> R | None:
        """Return ``run(rolling)`` from the one transaction that counting is done in.

        None, and nothing done, if it is not time yet (unless `early`), or somebody else holds it
        or has counted meanwhile.
        A process that freezes in it loses its session after some seconds.
        """
        raise NotImplementedError

    def read_span(self, after: int, limit: int) -> tuple[int, int]:
        """Return how many of the next `limit` attempts there are, and the id of the last one."""
        raise NotImplementedError

    def find_gaps(self, spans: Sequence[Span]) -> list[tuple[int, Span]]:
        """Return the ids within `spans` that have no row, each with the number of its span."""
        raise NotImplementedError

    def tally_attempts(self, spans: Sequence[Span], kind: str) -> list[Tally]:
        """Return the sums of all attempts within `spans`, by "task" or by "worker"."""
        raise NotImplementedError

    def tally_errors(self, spans: Sequence[Span], limit: int) -> list[ErrorTally]:
        """Return the sums of the errors within `spans`, at most `limit`, the most frequent."""
        raise NotImplementedError

    def read_rollups(self, keys: Iterable[RollupKey]) -> dict[RollupKey, RollupSums]:
        """Return the rows of those of `keys` that exist."""
        raise NotImplementedError

    def write_rollups(self, sums: dict[RollupKey, RollupSums]) -> None:
        """Insert rows, or set them to these sums."""
        raise NotImplementedError

    def add_to_error_groups(self, errors: Iterable[ErrorSums]) -> None:
        """Add to error groups; make those that do not exist."""
        raise NotImplementedError

    def save_rolling(
        self,
        attempt_id: int,
        gaps: Sequence[Gap],
        rolled_at: datetime | None,
        not_before: datetime,
    ) -> None:
        """Note how far the counting has come; rolled_at None leaves the one that is there."""
        raise NotImplementedError

    def prune_rollups(self, seconds: int, before: datetime, limit: int) -> int:
        """Delete up to `limit` rollups of this length that began before; return how many."""
        raise NotImplementedError

    def prune_error_groups(self, before: datetime, keep: int, limit: int) -> int:
        """Delete up to `limit` groups not seen since `before`, or beyond the newest `keep`."""
        raise NotImplementedError


def decoded_gaps(document: Iterable[Sequence[float]]) -> list[Gap]:
    """Return stored gaps."""
    return [Gap(int(low), int(high), float(since)) for low, high, since in document]


def rollup_row(key: RollupKey, sums: RollupSums) -> dict[str, Any]:
    """Return a rollup as the columns that are written."""
    return {
        **key._asdict(),
        **{outcome.value: sums.outcomes[outcome] for outcome in Outcome},
        "wait_seconds": sums.wait_seconds,
        "run_seconds": sums.run_seconds,
        "waits": dump(sums.waits),
        "runs": dump(sums.runs),
    }


def sums_of(row: Sequence[Any]) -> RollupSums:
    """Return the sums in a row that was read: outcomes, both sums, both histograms."""
    *outcomes, wait_seconds, run_seconds, waits, runs = row
    return RollupSums(
        Counter(dict(zip(Outcome, outcomes, strict=True))),
        wait_seconds,
        run_seconds,
        load(json.loads(waits)),
        load(json.loads(runs)),
    )


def error_row(error: ErrorSums) -> dict[str, Any]:
    """Return what is new about an error group as the columns that are written."""
    newest = error.newest
    return {
        "fingerprint": newest.fingerprint,
        "error_class": newest.error_class,
        "message": normalized_message(newest.error_message),
        "count": error.attempts,
        "first_seen": error.first_seen,
        "last_seen": newest.last_seen,
        "job_id": newest.job_id,
        "task": newest.task,
        "queue": newest.queue,
    }
