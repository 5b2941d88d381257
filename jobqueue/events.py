"""Typed events: what happened, once, for logs, metrics and the live page to subscribe to.

A transition emits one event after it is committed. Emitting never raises: a subscriber's error is
logged and forgotten. It is called where the event happened, in a loop that must turn for the
heartbeat: one that waits, waits for everybody. Events are per batch where the work is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

logger = logging.getLogger("jobqueue")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: a dotted `name`, its facts, and how loud it is in the log."""

    name: str
    level: int = logging.INFO
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the event as one flat dict."""
        return {"event": self.name, **asdict(self)["facts"]}


Subscriber = Callable[[Event], None]
_subscribers: list[Subscriber] = []


def subscribe(subscriber: Subscriber) -> Callable[[], None]:
    """Call `subscriber` with every event of this process; return the way to stop it."""
    _subscribers.append(subscriber)
    return lambda: _subscribers.remove(subscriber)


def line_of(error: BaseException, most: int | None = 300) -> str:
    """Return an error as one line of at most `most` characters, as events and logs tell it."""
    line = f"{type(error).__name__}: {error}".strip().split("\n", 1)[0]
    return line[:most]


def emit(name: str, *, level: int = logging.INFO, **facts: Any) -> None:
    """Tell the log and all subscribers that `name` happened."""
    if logger.isEnabledFor(level):
        listed = " ".join(f"{key}={value}" for key, value in facts.items())
        logger.log(level, "%s %s", name, listed, extra={"jobqueue": {"event": name, **facts}})
    if not _subscribers:
        return
    event = Event(name, level, facts)
    for subscriber in tuple(_subscribers):
        try:
            subscriber(event)
        except Exception:
            logger.exception("A subscriber failed on the event %s", name)
