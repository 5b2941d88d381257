"""Unique jobs: which jobs of a task are twins, and what an enqueue does that meets one. Pure.

A job with a unique key holds it while it waits (``until="start"``, the default), or until it has
ended (``until="done"``); with a window also after that. While somebody holds a key, an enqueue of
the same task and key makes no second job.

Two rules decide every case. The job that holds a key says how long it holds it; the enqueue that
meets it says what becomes of the two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, cast

START: Final = "start"
DONE: Final = "done"
KEEP: Final = "keep"
REPLACE: Final = "replace"
RESCHEDULE: Final = "reschedule"

MAX_KEY_LENGTH = 255
"""Characters of a stored key, so that task and key fit into one entry of the index. A longer key
is stored as its first characters and a hash of all of them; none is ever cut to equal another."""
MAX_WINDOW_SECONDS = 366 * 86_400.0
"""A key that nobody can use for longer than a year is a typo."""

KeyFunction = Callable[..., str | None]
UniqueKey = Literal[True] | Collection[str] | KeyFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """How the jobs of a task are unique.

    key: True (all arguments), the names of some, or a callable that is given the arguments and
    returns the key as text, or None for a job that is not unique.
    until: "start" (only waiting jobs are twins: one that runs may have read old data) or "done"
    (until it has ended). Default: "start", with a window "done".
    window: seconds or timedelta from its enqueue for which a job is a twin whatever its state.
    on_conflict: "keep" the twin as it is, "replace" its arguments, priority and expiry, or
    "reschedule" it to when the new job would have run. Only a twin that waits is changed.
    """

    key: UniqueKey = True
    until: Literal["start", "done"] | None = None
    window: float | timedelta | None = None
    on_conflict: Literal["keep", "replace", "reschedule"] = KEEP

    def __post_init__(self) -> None:
        set_value = object.__setattr__
        set_value(self, "key", _checked_key(self.key))
        set_value(self, "window", _checked_window(self.window))
        set_value(self, "until", _checked_until(self.until, self.window is not None))
        if self.on_conflict not in (KEEP, REPLACE, RESCHEDULE):
            raise ValueError(
                f'on_conflict must be "keep", "replace" or "reschedule", not {self.on_conflict!r}.'
            )


def stored_key(text: str) -> str:
    """Return `text` as it is stored: itself, or if it is long, its beginning and a hash."""
    if len(text) <= MAX_KEY_LENGTH:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return f"{text[: MAX_KEY_LENGTH - len(digest) - 1]}…{digest}"


def _checked_key(value: Any) -> UniqueKey:
    if value is True or callable(value):
        return cast(UniqueKey, value)
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        names = tuple(dict.fromkeys(value))
        if names and all(isinstance(name, str) for name in names):
            return names
    raise ValueError(
        f"A unique key is True, a list of argument names, or a callable, not {value!r}. "
        "A key of your own for one job is using(unique_key=...)."
    )


def _checked_window(value: Any) -> float | None:
    if value is None:
        return None
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= MAX_WINDOW_SECONDS:
        raise ValueError(f"A window is more than 0 seconds and at most a year, not {value!r}.")
    return float(seconds)


def _checked_until(value: Any, has_window: bool) -> Literal["start", "done"]:
    if value is None:
        return DONE if has_window else START
    if value not in (START, DONE):
        raise ValueError(f'until must be "start" or "done", not {value!r}.')
    if has_window and value == START:
        raise ValueError(
            'With a window a job holds its key also while it runs: until is "done" then.'
        )
    return cast(Literal["start", "done"], value)
