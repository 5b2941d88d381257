"""Cron expressions on the clock of a time zone, answered as instants in UTC.

    Cron("30 2 * * *", zone_of("Europe/Paris")).after(instant)

Five fields (minute, hour, day of month, month, day of week) or an @name, as Vixie's cron reads
them: where both days are restricted either may match, unless one begins with a star. `cronsim`
knows the calendar; it is asked about readings of the clock, without a zone, and everything that
has to do with offsets is decided here:

- **Sub-daily** expressions, whose hour is `*`, `*/n` or all 24: every real instant at which the
  clock shows a matching reading. A repeated hour counts twice, a skipped one not at all, so an
  hourly schedule ticks once every real hour.
- **Named hours**: each reading once a local day. A repeated reading counts the first time, a
  skipped one at the first instant after the gap (several skipped ones are that one instant).

Whole-second offsets, and at least a week between two changes of a zone's offset, are taken for
granted. An expression that matches no day at all, such as 30 February, is refused at once; the
search for a match ends after fifty years.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

MAX_EXPRESSION_LENGTH = 255
MAX_ZONE_LENGTH = 64
NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_SECOND = timedelta(seconds=1)
_STEP = timedelta(days=7)
_ANY = datetime(2024, 1, 1)  # noqa: DTZ001 - a reading of a clock has no zone


@lru_cache(maxsize=256)
def zone_of(name: Any) -> ZoneInfo:
    """Return the time zone called `name`; raise ValueError if this machine has none."""
    try:
        if not isinstance(name, str) or not 0 < len(name) <= MAX_ZONE_LENGTH:
            raise ValueError
        return ZoneInfo(name)
    except Exception:  # KeyError, ValueError, OSError: all mean the same
        raise ValueError(
            f"{str(name)[:MAX_ZONE_LENGTH]!r} is not a time zone of this machine; write one such "
            "as Europe/Paris or UTC (on a system without zone files, install the package tzdata)."
        ) from None


def fields_of(expression: Any) -> str:
    """Return `expression` as its five fields; raise ValueError, with the way out, if it has none.

    Bounded: also for an expression that would never match.
    """
    if not isinstance(expression, str) or len(expression) > MAX_EXPRESSION_LENGTH:
        raise ValueError(f"must be text of at most {MAX_EXPRESSION_LENGTH} characters")
    text = " ".join(expression.split())
    if text.startswith("@"):
        if text.lower() not in NAMES:
            raise ValueError(f"{text!r} is not one of {', '.join(NAMES)}")
        return NAMES[text.lower()]
    if len(text.split(" ")) != 5:
        raise ValueError(
            f"{text!r} must have five fields: minute, hour, day of month, month, day of week; "
            f"or be one of {', '.join(NAMES)}"
        )
    try:
        next(CronSim(text, _ANY))
    except StopIteration:
        raise ValueError(f"{text!r} never matches: no month has such a day") from None
    except (CronSimError, ValueError, AssertionError) as error:
        raise ValueError(f"{text!r} cannot be read: {str(error)[:100] or 'malformed'}") from None
    return text


class Cron:
    """One expression in one time zone. Immutable; make it by `cron_of`, which keeps it."""

    __slots__ = ("_fields", "_zone", "is_sub_daily")

    def __init__(self, expression: str, zone: ZoneInfo) -> None:
        self._fields = fields_of(expression)
        self._zone = zone
        hour = self._fields.split(" ")[1]
        self.is_sub_daily = hour.startswith("*") or len(CronSim(self._fields, _ANY).hours) == 24

    def after(self, instant: datetime) -> datetime | None:
        """Return the first tick after `instant`, None if there is none within fifty years."""
        try:
            return (
                self._sub_daily_after(instant) if self.is_sub_daily else self._named_after(instant)
            )
        except (StopIteration, OverflowError):
            return None

    def before(self, instant: datetime) -> datetime | None:
        """Return the last tick at or before `instant`, None if there is none in fifty years."""
        try:
            return (
                self._sub_daily_before(instant)
                if self.is_sub_daily
                else self._named_before(instant)
            )
        except (StopIteration, OverflowError):
            return None

    def matches(self, reading: datetime) -> bool:
        """Return whether the clock's `reading` itself is one that the expression names."""
        return self._next(reading - _SECOND) == reading

    def words(self) -> str:
        """Return the expression in English; the fields themselves where there are no words."""
        try:
            return CronSim(self._fields, _ANY).explain()
        except Exception:  # words are for people: no expression fails for want of them
            return self._fields

    # --- sub-daily: real instants ----------------------------------------

    def _sub_daily_after(self, instant: datetime) -> datetime:
        offset = offset_at(instant, self._zone)
        reading = _reading(instant, offset)
        while True:
            found = _instant(self._next(reading), offset)
            change = first_change(self._zone, instant, found)
            if change is None:
                return found
            # No match before the clock was changed: go on there, that instant included.
            instant, offset = change, offset_at(change, self._zone)
            reading = _reading(instant, offset) - _SECOND

    def _sub_daily_before(self, instant: datetime) -> datetime:
        while True:
            offset = offset_at(instant, self._zone)
            found = _instant(self._last(_reading(instant, offset)), offset)
            change = last_change(self._zone, found, instant)
            if change is None:
                return found
            instant = change - _SECOND

    # --- named hours: readings of the clock ----------------------------------------

    def _named_after(self, instant: datetime) -> datetime:
        reading = _reading(instant, offset_at(instant, self._zone))
        while True:
            # In a repeated hour, readings that were reached the first time are passed over.
            reading = self._next(reading)
            found = reached(self._zone, reading)
            if found > instant:
                return found

    def _named_before(self, instant: datetime) -> datetime:
        here = instant.astimezone(self._zone)
        reading = here.replace(tzinfo=None)
        if here.fold:  # the clock was put back: it has already shown later readings
            reading += _offset(here.replace(fold=0)) - _offset(here)
        while True:
            reading = self._last(reading)
            found = reached(self._zone, reading)
            if found <= instant:
                return found
            reading -= _SECOND

    # --- the calendar ----------------------------------------

    def _next(self, reading: datetime) -> datetime:
        """Return the first matching reading after `reading`."""
        return next(CronSim(self._fields, reading))

    def _last(self, reading: datetime) -> datetime:
        """Return the last matching reading at or before `reading`."""
        return next(CronSim(self._fields, reading.replace(microsecond=0) + _SECOND, reverse=True))


@lru_cache(maxsize=1_024)
def cron_of(expression: str, zone_name: str) -> Cron:
    """Return the expression in the zone of this name; raise ValueError if either is wrong."""
    return Cron(expression, zone_of(zone_name))


# --- clocks ----------------------------------------


def offset_at(instant: datetime, zone: tzinfo) -> timedelta:
    """Return the zone's offset from UTC at an instant."""
    return _offset(instant.astimezone(zone))


def reached(zone: tzinfo, reading: datetime) -> datetime:
    """Return the instant at which the zone's clock first shows `reading`, or first passes it."""
    here = reading.replace(tzinfo=zone, fold=0)
    found = here.astimezone(UTC)
    if found.astimezone(zone).replace(tzinfo=None) == reading:
        return found
    # In a gap: the offset before it (fold 0) leads past its instant, the one after it before it.
    change = first_change(zone, _instant(reading, _offset(here.replace(fold=1))), found)
    return found if change is None else change


def first_change(zone: tzinfo, early: datetime, late: datetime) -> datetime | None:
    """Return the first instant in (early, late] with another offset than before it, or None."""
    low = early.replace(microsecond=0)
    while low < late:
        high = min(low + _STEP, late)
        if offset_at(low, zone) != offset_at(high, zone):
            return _change_between(zone, low, high)
        low = high
    return None


def last_change(zone: tzinfo, early: datetime, late: datetime) -> datetime | None:
    """Return the last instant in (early, late] with another offset than before it, or None."""
    high = late.replace(microsecond=0)
    while high > early:
        low = max(high - _STEP, early)
        if offset_at(low, zone) != offset_at(high, zone):
            return _change_between(zone, low, high)
        high = low
    return None


def _change_between(zone: tzinfo, low: datetime, high: datetime) -> datetime:
    """Return the instant of the one change in (low, high], to the second."""
    before = offset_at(low, zone)
    while high - low > _SECOND:
        middle = low + timedelta(seconds=(high - low) // _SECOND // 2)
        if offset_at(middle, zone) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(here: datetime) -> timedelta:
    offset = here.utcoffset()
    assert offset is not None, "a time zone has an offset at any time"
    return offset


def _reading(instant: datetime, offset: timedelta) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None) + offset


def _instant(reading: datetime, offset: timedelta) -> datetime:
    return (reading - offset).replace(tzinfo=UTC)
