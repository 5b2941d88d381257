"""Values as text that people read and type: durations, times, budgets."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import datetime

from django.utils import timezone

from jobqueue.compat import TASK_MAX_PRIORITY, TASK_MIN_PRIORITY
from jobqueue.conf import MAX_QUEUE_NAME_LENGTH
from jobqueue.filters.times import check_time
from jobqueue.states import Outcome, State

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw]?)")
MAX_SECONDS = 100 * 365 * 86_400.0


def age(seconds: float | None) -> str:
    """Return a duration in its largest fitting unit, such as "12 s" or "3.5 h"; "–" for None."""
    if seconds is None:
        return "–"
    seconds = max(seconds, 0.0)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return (
                f"{seconds / size:.1f} {unit}"
                if seconds < 10 * size
                else f"{seconds / size:.0f} {unit}"
            )
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def clock_time(value: datetime | None) -> str:
    """Return a time in the project's time zone, with its offset; "–" for None."""
    if value is None:
        return "–"
    if timezone.is_naive(value):
        return value.isoformat(" ", "seconds")
    return timezone.localtime(value).isoformat(" ", "seconds")


def outcome_word(outcome: str) -> str:
    """Return how an attempt ended as people read it: what is `lost` is interrupted, not its job."""
    return "interrupted" if outcome == Outcome.LOST else outcome.replace("_", " ")


def budget(used: int, most: int | None) -> str:
    """Return failures out of the most that a job may have, such as "2/5"."""
    return f"{used}/{'∞' if most is None else most}"


def duration(text: str) -> float:
    """Return the seconds of "90", "90s", "30m", "12h", "7d" or "2w" (an argparse type)."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _UNITS[match[2] or "s"] if match else -1.0
    if not 0 <= seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration; write 90s, 30m, 12h, 7d or 2w."
        )
    return seconds


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return an argparse type for whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,12}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {low} to {high:,}."
            )
        return int(text)

    return parse


def priority(text: str) -> int:
    """Return `text` as a priority (an argparse type)."""
    number = int(text) if re.fullmatch(r"[+-]?\d{1,3}", text, re.ASCII) else None
    if number is None or not TASK_MIN_PRIORITY <= number <= TASK_MAX_PRIORITY:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no priority, which is {TASK_MIN_PRIORITY} to {TASK_MAX_PRIORITY}."
        )
    return number


def moment(text: str) -> str:
    """Return `text` if it says a time (an argparse type); `Shell.moment` knows which."""
    try:
        return check_time(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def state_name(text: str) -> str:
    """Return `text` if it is the name of a state (an argparse type)."""
    if text not in set(State):
        raise argparse.ArgumentTypeError(f"{text!r} is not a state; states are {', '.join(State)}.")
    return text


def queue_name(text: str) -> str:
    """Return `text` if it can be the name of a queue (an argparse type)."""
    if not 1 <= len(text) <= MAX_QUEUE_NAME_LENGTH:
        raise argparse.ArgumentTypeError(
            f"the name of a queue has 1 to {MAX_QUEUE_NAME_LENGTH} characters."
        )
    return text
