"""Times in filters: dates, times with or without an offset, and spans before or after now.

2026-01-01                    its first instant
2026-01-01T12:30              in the zone of whoever asks
2026-01-01T12:30:00+01:00     in its own
-2h, +30m                     before or after now; s, m, h, d, w
now
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from jobqueue.plan import EARLIEST, LATEST

if TYPE_CHECKING:
    from jobqueue.filters.terms import Filter, Term

_RELATIVE = re.compile(r"([+-])(\d{1,9})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ABSOLUTE = re.compile(
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_WRITE = "Write 2026-01-01, 2026-01-01T12:30, -2h (two hours ago) or +30m."


def check_time(text: str) -> str:
    """Return `text` if it is a time. Raise ValueError with how to write one."""
    moment_of(text, datetime(2026, 1, 1, tzinfo=UTC), UTC)
    return text


def moment_of(text: str, now: datetime, zone: tzinfo) -> datetime:
    """Return the time that `text` says, of which `now` and `zone` are the reader's.

    Raise ValueError unless it lies in 1970 … 9999.
    """
    try:
        moment = _read(text, now, zone)
    except (ValueError, OverflowError):
        raise ValueError(f"This is no time: {text!r}. {_WRITE}") from None
    if not EARLIEST <= moment <= LATEST:
        raise ValueError(f"A time lies between 1970 and 9999, not {text!r}.")
    return moment


def _read(text: str, now: datetime, zone: tzinfo) -> datetime:
    if text == "now":
        return now
    relative = _RELATIVE.fullmatch(text)
    if relative:
        span = timedelta(**{_UNITS[relative[3]]: int(relative[2])})
        return now + span if relative[1] == "+" else now - span
    if not _ABSOLUTE.fullmatch(text):
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return moment.astimezone(UTC)


def pinned(chosen: Filter, now: datetime, zone: tzinfo) -> Filter:
    """Return `chosen` with every time written out, so that it means the same ever after."""
    return replace(chosen, terms=tuple(_pinned_term(term, now, zone) for term in chosen.terms))


def _pinned_term(term: Term, now: datetime, zone: tzinfo) -> Term:
    from jobqueue.filters.keys import KEYS

    if not term.key or KEYS[term.key].parse is not check_time:
        return term
    return replace(
        term,
        values=tuple(
            replace(value, text=moment_of(value.text, now, zone).isoformat())
            for value in term.values
        ),
    )
