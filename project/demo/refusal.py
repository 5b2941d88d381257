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


def how_refused(lines: Iterable[str], *, pid: int, job_id: str, exited: bool) -> Refusal:
    """Return what process `pid` says first about itself or the job; UNKNOWN if nothing yet.

    lines: what it logged since it was thawed, as JSON. A process that is gone without a word has
    exited by itself: nobody else ends it.
    """
    for line in lines:
        record = _record(line)
        if record.get("pid") == pid and record.get("job", job_id) == job_id:
            refusal = _meaning(record)
            if refusal:
                return refusal
    return Refusal.EXIT if exited else Refusal.UNKNOWN


def _meaning(record: dict[str, object]) -> Refusal | None:
    match record.get("event"):
        case "worker.self_exit":
            return Refusal.EXIT
        case "job.commit_resolved" if record.get("verdict") == "lease lost":
            return Refusal.SESSION  # it lost its connection and asked what had become of the job
        case "job.lease_lost":
            return Refusal.GUARD
    return None


def _record(line: str) -> dict[str, object]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
