"""When a schedule ticks, and what becomes of ticks that came too late. Pure arithmetic of times.

A `Plan` is one of three: a cron expression in a time zone (`jobqueue.cron` has the rules for
changes of the clock), an interval in real seconds, or one time. Its ticks are a function of the
plan alone: they depend on no process, no restart and no earlier tick.

- An interval is counted from `start_at`; without one from 1970-01-01T00:00Z, so that "every 900
  seconds" ticks at each quarter of an hour.
- No tick is before `start_at` or after `end_at`; both may themselves be ticks.
- Times are aware, and lie between 1970 and 9999.

A `Policy` says what else there is to a tick:

missed         what is done about ticks that nobody made a job for in time: "once" (default; one
               job, for the newest of them), "skip" (none for those late by more than
               `MISSED_AFTER_SECONDS`), "all" (a job each, for the newest `missed_limit`).
overlap        what is done while an earlier job of the schedule has not ended: "allow" (default),
               "skip" the tick, or "queue" its job behind the earlier ones.
jitter_seconds a job is due up to so long after its tick. The same tick always has the same delay.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from jobqueue.cron import Cron, cron_of, zone_of
from jobqueue.exceptions import InvalidSchedule

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)
"""A day before Python's last, so that the time can be shown in any zone."""
MAX_EVERY_SECONDS = 10 * 366 * 86_400
MAX_JITTER_SECONDS = 86_400
MISSED = ("once", "skip", "all")
OVERLAP = ("allow", "skip", "queue")
MISSED_AFTER_SECONDS = 60
"""A tick noticed later than this was missed. Schedulers look every second; a restart takes
some."""
MISSED_LIMIT = 100
MAX_MISSED_LIMIT = 1_000
"""Jobs that one look makes for a schedule: they are one transaction."""
MAX_COUNTED = 100
"""Missed ticks that are counted, for people: a night of a schedule that ticks every second would
take longer to count than to run."""
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """When a schedule ticks. Raise InvalidSchedule, with a reason for each field, if never."""

    cron: str = ""
    every_seconds: int | None = None
    at: datetime | None = None
    time_zone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None

    def __post_init__(self) -> None:
        errors = dict(self._errors())
        if errors:
            raise InvalidSchedule(errors)

    def _errors(self) -> Iterator[tuple[str, str]]:
        try:
            zone_of(self.time_zone)
        except ValueError as error:
            yield "time_zone", str(error)
            return
        for name in ("at", "start_at", "end_at"):
            if (problem := _time_problem(getattr(self, name))) is not None:
                yield name, problem
                return
        if self.start_at and self.end_at and self.end_at < self.start_at:
            yield "end_at", "must not be before start_at"
        yield from self._kind_errors()

    def _kind_errors(self) -> Iterator[tuple[str, str]]:
        given = [bool(self.cron), self.every_seconds is not None, self.at is not None]
        if sum(given) != 1:
            yield "cron", "give exactly one of a cron expression, an interval and a time"
        elif self.cron:
            try:
                cron_of(self.cron, self.time_zone)
            except ValueError as error:
                yield "cron", str(error)
        elif self.every_seconds is not None:
            if not _is_whole(self.every_seconds, 1, MAX_EVERY_SECONDS):
                yield "every_seconds", f"must be whole seconds from 1 to {MAX_EVERY_SECONDS:,}"
        elif self.at is not None and not self._is_within(self.at):
            yield "at", "must lie between start_at and end_at"

    def after(self, instant: datetime) -> datetime | None:
        """Return the first tick after `instant`, None if there is none."""
        if self.start_at is not None:
            instant = max(instant, self.start_at - _INSTANT)
        if instant >= LATEST:
            return None
        found = self._after(max(instant, EARLIEST - _INSTANT))
        return found if found is not None and self._is_within(found) else None

    def before(self, instant: datetime) -> datetime | None:
        """Return the last tick at or before `instant`, None if there is none."""
        if self.end_at is not None:
            instant = min(instant, self.end_at)
        if instant < EARLIEST:
            return None
        found = self._before(min(instant, LATEST))
        return found if found is not None and self._is_within(found) else None

    def ticks(self, after: datetime) -> Iterator[datetime]:
        """Yield the ticks after an instant, in order."""
        found = self.after(after)
        while found is not None:
            yield found
            found = self.after(found)

    def fingerprint(self, is_enabled: bool) -> str:
        """Return a text that differs whenever the ticks to come may differ."""
        times = [t and t.astimezone(UTC).isoformat() for t in (self.at, self.start_at, self.end_at)]
        facts = [is_enabled, self.cron, self.every_seconds, self.time_zone, *times]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]

    def words(self) -> str:
        """Return the plan in English, for people."""
        if self.cron:
            return cron_of(self.cron, self.time_zone).words()
        if self.every_seconds is not None:
            return f"Every {_duration(self.every_seconds)}"
        assert self.at is not None
        return f"Once, at {self.at.astimezone(zone_of(self.time_zone)):%Y-%m-%d %H:%M:%S}"

    def _after(self, instant: datetime) -> datetime | None:
        if self.cron:
            return cron_of(self.cron, self.time_zone).after(instant)
        if self.at is not None:
            return self.at if self.at > instant else None
        return self._multiple(instant, 1)

    def _before(self, instant: datetime) -> datetime | None:
        if self.cron:
            return cron_of(self.cron, self.time_zone).before(instant)
        if self.at is not None:
            return self.at if self.at <= instant else None
        return self._multiple(instant, 0)

    def _multiple(self, instant: datetime, more: int) -> datetime | None:
        anchor, every = self.start_at or EARLIEST, timedelta(seconds=self.every_seconds or 1)
        try:
            return anchor + ((instant - anchor) // every + more) * every
        except OverflowError:
            return None

    def _is_within(self, instant: datetime) -> bool:
        return (self.start_at or EARLIEST) <= instant <= (self.end_at or LATEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What becomes of late and overlapping ticks. Raise InvalidSchedule for what cannot be."""

    missed: str = "once"
    missed_limit: int = MISSED_LIMIT
    overlap: str = "allow"
    jitter_seconds: int = 0

    def __post_init__(self) -> None:
        errors = {}
        if self.missed not in MISSED:
            errors["missed"] = f"must be one of {', '.join(MISSED)}"
        if self.overlap not in OVERLAP:
            errors["overlap"] = f"must be one of {', '.join(OVERLAP)}"
        if not _is_whole(self.missed_limit, 1, MAX_MISSED_LIMIT):
            errors["missed_limit"] = f"must be a whole number from 1 to {MAX_MISSED_LIMIT:,}"
        if not _is_whole(self.jitter_seconds, 0, MAX_JITTER_SECONDS):
            errors["jitter_seconds"] = f"must be whole seconds from 0 to {MAX_JITTER_SECONDS:,}"
        if errors:
            raise InvalidSchedule(errors)

    def delay(self, schedule: str, tick: datetime) -> timedelta:
        """Return how long after `tick` its job is due: spread evenly, and always the same."""
        if not self.jitter_seconds:
            return timedelta(0)
        digest = hashlib.sha256(f"{schedule}\n{tick.timestamp()}".encode()).digest()
        share = int.from_bytes(digest[:8]) / 2**64
        return timedelta(seconds=round(share * self.jitter_seconds, 3))


# --- what is due ----------------------------------------


class Due(NamedTuple):
    """Ticks to make jobs for, ascending; the newest tick that has come; how many get no job.

    ticks may be empty although `newest` is not None: then all were missed. missed: counted up to
    `MAX_COUNTED`.
    """

    ticks: tuple[datetime, ...] = ()
    newest: datetime | None = None
    missed: int = 0


def due(plan: Plan, policy: Policy, last_tick: datetime, now: datetime) -> Due:
    """Return what is due in (last_tick, now], by the policy. Bounded, however long it was."""
    newest = plan.before(now)
    if newest is None or newest <= last_tick:
        return Due()
    if policy.missed == "all":
        ticks = tuple(_backwards(plan, newest, last_tick, policy.missed_limit))[::-1]
        return Due(ticks, newest, _count(plan, ticks[0], last_tick))
    missed = _count(plan, newest, last_tick)
    if policy.missed == "skip" and now - newest > timedelta(seconds=MISSED_AFTER_SECONDS):
        return Due((), newest, missed + 1)
    return Due((newest,), newest, missed)


def _backwards(plan: Plan, newest: datetime, stop: datetime, limit: int) -> Iterator[datetime]:
    """Yield ticks from `newest` down, until `stop` or the limit."""
    tick: datetime | None = newest
    while tick is not None and tick > stop and limit:
        yield tick
        limit -= 1
        tick = plan.before(tick - _INSTANT)


def _count(plan: Plan, tick: datetime, stop: datetime) -> int:
    """Return how many ticks lie between `stop` and `tick`, neither counted."""
    return sum(1 for _ in _backwards(plan, tick, stop, MAX_COUNTED + 1)) - 1


# --- preview ----------------------------------------


class PlannedTick(NamedTuple):
    """A tick to come: the instant in UTC, the same in the plan's zone, and what is odd about it."""

    at: datetime
    local: datetime
    note: str


def preview(plan: Plan, after: datetime, count: int) -> list[PlannedTick]:
    """Return the next `count` ticks after an instant: what every surface shows."""
    zone = zone_of(plan.time_zone)
    cron = cron_of(plan.cron, plan.time_zone) if plan.cron else None
    return [
        PlannedTick(tick, local := tick.astimezone(zone), _note(cron, local))
        for tick in islice(plan.ticks(after), count)
    ]


def _note(cron: Cron | None, local: datetime) -> str:
    if cron is None:
        return ""
    if not cron.is_sub_daily and not cron.matches(local.replace(tzinfo=None)):
        return "the clock skips the time that is named; this is the first instant after it"
    if local.fold:
        return "the clock shows this time twice; this is the second"
    if local.replace(fold=1).utcoffset() != local.utcoffset():
        return "the clock shows this time twice; this is the first"
    return ""


# --- values ----------------------------------------


def _time_problem(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        return "must be a time with a time zone"
    try:
        is_within = EARLIEST <= value <= LATEST
    except OverflowError:
        is_within = False
    return None if is_within else "must lie between 1970 and 9999"


def _is_whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _duration(seconds: int) -> str:
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds % size == 0:
            count = seconds // size
            return unit if count == 1 else f"{count:,} {unit}s"
    return "second" if seconds == 1 else f"{seconds:,} seconds"
