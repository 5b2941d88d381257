"""An independent oracle of cron's ticks: a wall clock, looked at once a minute for two years.

It shares nothing with `jobqueue.cron`: it neither computes nor searches, it looks. A sub-daily
expression ticks whenever the clock shows a matching reading. One that names hours ticks when the
clock first reaches or passes a matching reading: what it has shown before is its high-water mark.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTES = 2 * 365 * 1_440
MINUTE = timedelta(minutes=1)
QUARTER = 15
"""Every zone changes its offset at a quarter of an hour, so its offset is asked for that often."""
A_DAY = 1_440


@dataclass(frozen=True)
class Expression:
    """A cron expression as text, and what it means, said without reading the text."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    is_sub_daily: bool
    has_day: Callable[[date], bool] = lambda day: True


class WallClock:
    """The clock of a zone: `readings[n]`, in minutes since 0001-01-01, n minutes after START."""

    def __init__(self, zone: str) -> None:
        self.zone = zone
        self.readings = list(_readings(ZoneInfo(zone)))
        self.changes = [
            n for n in range(1, MINUTES) if self.readings[n] != self.readings[n - 1] + 1
        ]

    def ticks(self, expression: Expression) -> list[datetime]:
        """Return every tick of the two years."""
        minutes = {60 * h + m for h in expression.hours for m in expression.minutes}
        first, last = self.readings[0] // A_DAY, self.readings[-1] // A_DAY
        days = {n for n in range(first - 1, last + 2) if expression.has_day(date.fromordinal(n))}
        shown = {d * A_DAY + m for d in days for m in minutes}
        found = self._showing(shown) if expression.is_sub_daily else self._reaching(shown)
        return [START + n * MINUTE for n in found]

    def _showing(self, wanted: set[int]) -> list[int]:
        return [n for n, reading in enumerate(self.readings) if reading in wanted]

    def _reaching(self, wanted: set[int]) -> Iterator[int]:
        mark = self.readings[0] - 1
        for n, reading in enumerate(self.readings):
            if reading == mark + 1:  # as nearly always
                mark = reading
                if reading in wanted:
                    yield n
            elif reading > mark:
                if any(passed in wanted for passed in range(mark + 1, reading + 1)):
                    yield n
                mark = reading


def _readings(zone: ZoneInfo) -> Iterator[int]:
    for n in range(0, MINUTES, QUARTER):
        shown = (START + n * MINUTE).astimezone(zone)
        reading = shown.toordinal() * A_DAY + shown.hour * 60 + shown.minute
        yield from range(reading, reading + QUARTER)


@cache
def clock_of(zone: str) -> WallClock:
    """Return the clock of a zone; made once, as it is large."""
    return WallClock(zone)
