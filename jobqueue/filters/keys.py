"""The keys of the filter language: what each means, and which values it takes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from jobqueue.filters.times import check_time
from jobqueue.states import FINISHED, LIVE, WAITING, State

STATE_GROUPS: Mapping[str, frozenset[State]] = {
    "live": LIVE,
    "waiting": WAITING,
    "finished": FINISHED,
    "any": frozenset(State),
}
"""Words that stand for several states."""

EQUAL = (":",)
ORDER = (">", ">=", "<", "<=")
MAX_NUMBER = 2_000_000_000
"""Beyond it no column of ours reaches, and a database would refuse the comparison."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key. parse: returns the canonical text of a value, or raises ValueError with why not."""

    name: str
    meaning: str
    example: str
    parse: Callable[[str], str] = str
    operators: tuple[str, ...] = EQUAL
    has_patterns: bool = False


def _state(text: str) -> str:
    name = text.lower()
    known = [*State, *STATE_GROUPS]
    if name not in known:
        alike = difflib.get_close_matches(name, known, n=1)
        meant = f"Did you mean {alike[0]}?" if alike else f"States are {', '.join(known)}."
        raise ValueError(f"There is no state {text!r}. {meant}")
    return name


def _number(text: str) -> str:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"This is no whole number: {text!r}.") from None
    if not text.isascii() or abs(number) > MAX_NUMBER:
        raise ValueError(f"This is no number up to {MAX_NUMBER:,}: {text!r}.")
    return str(number)


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ValueError(
            f"Not the id of a job: {text!r}. An id looks like 01890a5d-ac96-774b-bcce-b302099a8057."
        ) from None


def _text(name: str, meaning: str, example: str) -> Key:
    return Key(name, meaning, example, has_patterns=True)


def _time(name: str, meaning: str, example: str) -> Key:
    return Key(name, meaning, example, parse=check_time, operators=ORDER)


def _count(name: str, meaning: str, example: str) -> Key:
    return Key(name, meaning, example, parse=_number, operators=(*EQUAL, *ORDER))


KEYS: Mapping[str, Key] = {
    key.name: key
    for key in (
        Key("state", "state, or live, waiting, finished, any", "state:dead", parse=_state),
        _text("queue", "queue", "queue:mail"),
        _text("task", "dotted path of the task", "task:shop.tasks.send"),
        Key("tag", "one of the job's tags", "tag:order:42"),
        Key("id", "id of the job", "id:01890a5d-ac96-774b-bcce-b302099a8057", parse=_uuid),
        Key(
            "args",
            "an argument by its name or position, and what lies within it",
            "args.user_id:42",
        ),
        _text("error", "class of the last error, with or without its module", "error:ValueError"),
        Key("message", "text that the last error's message contains", 'message:"no such order"'),
        Key("fingerprint", "errors that are alike (see jobs show)", "fingerprint:5f1d…"),
        _text("reason", "why it is blocked, dead or cancelled", 'reason:"unknown task"'),
        _text("worker", "identity, name or host of the worker it runs on", "worker:web-1"),
        _text("schedule", "schedule that it comes from", "schedule:nightly"),
        _text("backend", "alias in TASKS that it was enqueued through", "backend:default"),
        _text("created_by", "who made it", "created_by:kim"),
        Key(
            "copied_from",
            "job that it was copied from",
            "copied_from:01890a5d-ac96-774b-bcce-b302099a8057",
            parse=_uuid,
        ),
        _count("priority", "priority", "priority>=5"),
        _count("attempts", "attempts that have ended", "attempts>3"),
        _count("failures", "attempts that were charged since the last requeue", "failures:0"),
        _time("created", "when it was enqueued", "created>2026-01-01"),
        _time("run_at", "when it is or was due", "run_at<+1h"),
        _time("finished", "when it ended", "finished>-2h"),
    )
}
