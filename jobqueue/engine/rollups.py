"""Counting attempts into rollups: each exactly once, whoever dies, in any number of schedulers.

A turn is one transaction: it takes the row that says up to which attempt everything has been
counted, sums the attempts behind it in the order of their ids, adds the sums to the rollups of
their minute and hour, and moves that row on. Whoever dies in it leaves nothing; whoever comes
meanwhile does nothing. No job pays for it, and no index is there only for it: ids grow as
attempts end.

Ids are drawn before their transactions commit, so behind an attempt there may be one with a
smaller id that nobody can see yet. Such gaps are remembered and looked at again in every turn, and
counted when they fill. A gap that nothing fills belongs to a transaction that was rolled back: it
is forgotten after `GAP_SECONDS`. Only an attempt whose COMMIT takes longer than that is never
counted.

What it costs is a share of the time: whoever counted says when to count again (`SHARE`). Behind a
burst the rollups are late, and say so; nothing else is.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from jobqueue import histogram
from jobqueue.conf import HOUR_ROLLUP_SECONDS, MAX_ERROR_GROUPS, MINUTE_ROLLUP_SECONDS
from jobqueue.models import Attempt, Rolling, Rollup
from jobqueue.states import FAILURES, Outcome
from jobqueue.storage import Storage
from jobqueue.storage.rollups import (
    ErrorSums,
    ErrorTally,
    Gap,
    RollupKey,
    RollupSums,
    Span,
    Tally,
)
from jobqueue.storage.rollups import Rolling as RollingRecord

MINUTE, HOUR = 60, 3_600
TURN_ATTEMPTS = 20_000
"""Attempts counted in one turn: some hundredths of a second, in which nothing is promoted."""
TURN_ATTEMPTS_ON_ONE_HOST = 2_000
"""The same where the only write lock is held meanwhile."""
TURN_ERRORS = 1_000
"""Kinds of errors counted in one turn; the rarer ones of a turn are not, if there are more."""
TURN_SECONDS = 5.0
"""Least pause between two turns, of all schedulers together: what is shown is about as old."""
SHARE = 0.02
"""Most of the time that counting may take."""
MAX_PAUSE_SECONDS = 300.0
GAP_SECONDS = 600.0
"""How long an id that has no attempt is looked for."""
MAX_GAPS = 5_000
"""Gaps that are remembered, the newest: looking at them costs an index entry each."""
PRUNE_BATCH = 5_000

Sums = dict[RollupKey, RollupSums]


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn did: attempts counted, whether more wait, seconds until the next is due."""

    counted: int
    is_behind: bool
    pause_seconds: float


def roll_up(
    storage: Storage,
    *,
    early: bool = False,
    limit: int | None = None,
    now: datetime | None = None,
) -> Turn | None:
    """Count up to `limit` attempts, if it is time or `early`.

    None if it is not, if there is nothing to count, or if somebody else counts.
    """
    if not storage.has_uncounted(early, now):
        return None
    began = time.monotonic()
    most = limit or (TURN_ATTEMPTS_ON_ONE_HOST if storage.one_host else TURN_ATTEMPTS)

    def turn(rolling: RollingRecord) -> Turn:
        return _turn(storage, rolling, most, began)

    return storage.hold_rolling(turn, early, now)


def catch_up(storage: Storage, should_stop: Callable[[], bool] = lambda: False) -> int:
    """Count everything there is, without pauses; return how many attempts that were.

    For tests and shells. Nothing is done while somebody else counts.
    """
    total = 0
    while not should_stop():
        done = roll_up(storage, early=True)
        if done is None or not done.counted:
            break
        total += done.counted
    return total


def lateness(database: str) -> float:
    """Return how many seconds ago the oldest attempt ended that is not counted yet; 0.0 if all are.

    A look into the key of attempts behind the last counted one, however many there are.
    """
    return _late(database, Rolling.objects.using(database).first())


def counted_until(database: str, now: datetime) -> datetime | None:
    """Return up to when attempts are counted; None if some ended and none has ever been."""
    row = Rolling.objects.using(database).first()
    late = _late(database, row)
    if late and (row is None or row.rolled_at is None):
        return None
    return now - timedelta(seconds=late)


def _late(database: str, row: Rolling | None) -> float:
    age = ExpressionWrapper(Now() - F("finished_at"), output_field=DurationField())
    rest = Attempt.objects.using(database).filter(id__gt=row.attempt_id if row else 0)
    oldest = rest.order_by("id").values_list(age, flat=True).first()
    return 0.0 if oldest is None else max(float(oldest.total_seconds()), 0.0)


def prune_rollups(storage: Storage, should_stop: Callable[[], bool] = lambda: False) -> int:
    """Delete rollups and error groups that are too old, in small batches; return how many."""
    now = storage.clock()
    minutes = now - timedelta(seconds=MINUTE_ROLLUP_SECONDS)
    hours = now - timedelta(seconds=HOUR_ROLLUP_SECONDS)
    batches: tuple[Callable[[], int], ...] = (
        lambda: storage.prune_rollups(MINUTE, minutes, PRUNE_BATCH),
        lambda: storage.prune_rollups(HOUR, hours, PRUNE_BATCH),
        lambda: storage.prune_error_groups(hours, MAX_ERROR_GROUPS, PRUNE_BATCH),
    )
    total = 0
    for batch in batches:
        while not should_stop():
            count = batch()
            total += count
            if count < PRUNE_BATCH:
                break
    return total


# --- a turn ----------------------------------------


def _turn(storage: Storage, rolling: RollingRecord, limit: int, began: float) -> Turn:
    fresh, last = storage.read_span(rolling.attempt_id, limit)
    spans = [Span(rolling.attempt_id + 1, last)] if fresh else []
    spans += [Span(gap.low, gap.high) for gap in rolling.gaps]
    counted = _count(storage, spans) if spans else 0
    gaps = _open_gaps(storage, rolling, fresh, last)
    is_behind = fresh == limit
    pause = _pause(time.monotonic() - began, is_behind)
    storage.save_rolling(
        last,
        gaps,
        None if is_behind else rolling.now,
        rolling.now + timedelta(seconds=pause),
    )
    return Turn(counted, is_behind, pause)


def _pause(cost_seconds: float, is_behind: bool) -> float:
    """Return how long nobody needs to count again."""
    least = 0.0 if is_behind else TURN_SECONDS
    return min(max(cost_seconds / SHARE, least), MAX_PAUSE_SECONDS)


def _open_gaps(storage: Storage, rolling: RollingRecord, fresh: int, last: int) -> list[Gap]:
    """Return the ids that have no attempt yet and may get one."""
    now = rolling.now.timestamp()
    found = [Gap(rolling.attempt_id + 1, last, now)] if fresh < last - rolling.attempt_id else []
    found += rolling.gaps
    if not found:
        return []
    empty = storage.find_gaps([Span(gap.low, gap.high) for gap in found])
    left = [Gap(span.low, span.high, found[number].since) for number, span in empty]
    # A clock that stepped back makes a gap look younger than new: it is one.
    left = [gap for gap in left if gap.since > now - GAP_SECONDS]
    return sorted(left, key=lambda gap: gap.since)[-MAX_GAPS:]


def _count(storage: Storage, spans: Sequence[Span]) -> int:
    """Add the attempts within `spans` to their rollups; return how many they were."""
    new: Sums = {}
    for kind in (Rollup.Kind.TASK, Rollup.Kind.WORKER):
        tallies = storage.tally_attempts(spans, str(kind))
        _add_tallies(new, kind, tallies)
    if not new:
        return 0
    if any(tally.outcome in FAILURES for tally in tallies):
        errors = storage.tally_errors(spans, TURN_ERRORS)
        for error in errors:
            _add_error(new, error)
        if errors:
            storage.add_to_error_groups(_error_sums(errors))
    for key, stored in storage.read_rollups(new).items():
        new[key].add(stored)
    storage.write_rollups(new)
    return sum(tally.attempts for tally in tallies)


@dataclass(slots=True)
class _Gathered:
    """What is new about one task or worker in one minute; the histograms not counted yet."""

    sums: RollupSums = field(default_factory=RollupSums)
    waits: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)

    def add(self, tally: Tally) -> None:
        self.sums.outcomes[tally.outcome] += tally.attempts
        self.sums.wait_seconds += tally.wait_seconds
        self.waits.append(tally.waits)
        if tally.outcome != Outcome.LOST:  # its end is when it was noticed
            self.sums.run_seconds += tally.run_seconds
            self.runs.append(tally.runs)

    def counted(self) -> RollupSums:
        self.sums.waits = histogram.counted("".join(self.waits))
        self.sums.runs = histogram.counted("".join(self.runs))
        return self.sums


def _add_tallies(new: Sums, kind: str, tallies: Iterable[Tally]) -> None:
    """Add what was summed by task or by worker to the sums of minutes and hours."""
    gathered: defaultdict[tuple[datetime, str, str], _Gathered] = defaultdict(_Gathered)
    for tally in tallies:
        gathered[tally.minute, tally.queue, tally.name].add(tally)
    for (minute, queue, name), found in gathered.items():
        _add(new, minute, kind, queue, name, found.counted())


def _add_error(new: Sums, error: ErrorTally) -> None:
    sums = RollupSums(Counter({error.outcome: error.attempts}))
    _add(new, error.minute, Rollup.Kind.ERROR, "", error.fingerprint, sums)


def _add(new: Sums, minute: datetime, kind: str, queue: str, name: str, sums: RollupSums) -> None:
    """Add to the sums of a minute and of the hour that it lies in."""
    minute = minute.astimezone(UTC)
    for seconds, at in ((MINUTE, minute), (HOUR, minute.replace(minute=0))):
        key = RollupKey(seconds, str(kind), at, queue, name)
        new.setdefault(key, RollupSums()).add(sums)


def _error_sums(errors: Iterable[ErrorTally]) -> Iterable[ErrorSums]:
    """Return one sum a fingerprint, with its newest error."""
    groups: dict[str, ErrorSums] = {}
    for error in sorted(errors, key=lambda e: e.last_seen):
        group = groups.get(error.fingerprint)
        if group is None:
            groups[error.fingerprint] = ErrorSums(error, error.attempts, error.first_seen)
        else:
            group.newest = error
            group.attempts += error.attempts
            group.first_seen = min(group.first_seen, error.first_seen)
    return groups.values()
