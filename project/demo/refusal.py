"""How a thawed worker was kept from committing, read from what it logs.

Three things can stop it, and each is enough: the guard in the finishing statement, the end of
its database session, or the worker's own exit when it sees that its lease is gone. Which comes
first is a race, so the demo reports what happened instead of demanding one of them.
"""

import json
from collections.abc import Iterable
from enum import StrEnum


class Refusal(StrEnum):
    GUARD = "by the guard"
    SESSION = "by its ended session"
    EXIT = "by its own exit"
    NOT_REFUSED = "NOT refused"
    NO_ZOMBIE = "no zombie: nobody took its job over"
    UNKNOWN = "unknown: it neither ended nor said anything"


REFUSED = frozenset({Refusal.GUARD, Refusal.SESSION, Refusal.EXIT})

EVENTS = {
    "job.lease_lost": Refusal.GUARD,
    "job.session_ended": Refusal.SESSION,
    "worker.self_exit": Refusal.EXIT,
}
"""The worker's events that tell, in its log lines of `--log-format json`."""


def how_refused(lines: Iterable[str], *, pid: int, exited: bool) -> Refusal:
    """Return what process `pid` says about itself first in `lines`; UNKNOWN if nothing yet.

    A process that is gone without a word has exited by itself: nobody else ends it.
    """
    for line in lines:
        record = _record(line)
        if record.get("pid") == pid and record.get("event") in EVENTS:
            return EVENTS[record["event"]]
    return Refusal.EXIT if exited else Refusal.UNKNOWN


def _record(line: str) -> dict[str, object]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
