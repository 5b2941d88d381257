"""Schedules as they are written down: the keywords, what each takes, and what that becomes.

    OPTIONS["SCHEDULES"] = {
        "nightly report": {"task": "shop.tasks.report", "cron": "0 6 * * *", "overlap": "skip"},
        "heartbeat": {"task": "shop.tasks.ping", "every": timedelta(minutes=5)},
    }

The same keywords are taken by `jobqueue.schedule()` and `jobqueue.control`:

task           dotted path of the task (here the task itself is taken, too)
cron           five fields or an @name; or
every          whole seconds, or a timedelta; or
at             one time
args, kwargs   of each job; JSON
time_zone      of the cron expression and of times without one; default: the setting TIME_ZONE
start, end     no tick before or after; a tick may be at either
missed         "once" (default), "skip" or "all", and missed_limit for "all" (default 100)
overlap        "allow" (default), "skip" or "queue"
jitter         seconds, or a timedelta: a job is due up to so long after its tick
queue_name     default: the task's own
priority       default: the task's own
enabled        False: as if it were not declared

A time is a datetime, or text such as "2026-12-01T06:00"; without an offset it is one of the
schedule's zone. `jobqueue.plan` says what all this means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from jobqueue.cron import zone_of
from jobqueue.exceptions import InvalidSchedule
from jobqueue.plan import MISSED_LIMIT, Plan, Policy

MAX_SCHEDULE_NAME_LENGTH = 128
MAX_SCHEDULES = 1_000
"""Schedules declared in code: every scheduler reads them all every few seconds."""
KEYWORDS = (
    "task", "cron", "every", "at", "args", "kwargs", "time_zone", "start", "end", "missed",
    "missed_limit", "overlap", "jitter", "queue_name", "priority", "enabled",
)  # fmt: skip


COLUMNS = {
    "args": "arguments",
    "kwargs": "arguments",
    "every": "every_seconds",
    "start": "start_at",
    "end": "end_at",
    "jitter": "jitter_seconds",
}
"""The columns of keywords that have another name."""
_KEYWORDS = {column: keyword for keyword, column in COLUMNS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One schedule as it was written down, checked as far as can be without its task."""

    name: str
    task: str
    plan: Plan
    policy: Policy = field(default_factory=Policy)
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    queue_name: str = ""
    priority: int | None = None
    enabled: bool = True


def declaration(name: Any, given: Mapping[str, Any]) -> Declaration:
    """Return what `given` (keywords, see the module) declares.

    Raise InvalidSchedule, with a reason for each keyword.
    """
    errors = dict(_errors(name, given))
    if errors:
        raise InvalidSchedule(errors)
    try:
        return _declaration(name, given)
    except InvalidSchedule as error:
        raise InvalidSchedule(
            {_KEYWORDS.get(column, column): text for column, text in error.errors.items()}
        ) from None


def _declaration(name: str, given: Mapping[str, Any]) -> Declaration:
    zone = given.get("time_zone") or default_zone()
    plan = Plan(
        cron=given.get("cron") or "",
        every_seconds=_seconds("every", given.get("every")),
        at=_time("at", given.get("at"), zone),
        time_zone=zone,
        start_at=_time("start", given.get("start"), zone),
        end_at=_time("end", given.get("end"), zone),
    )
    policy = Policy(
        missed=given.get("missed", "once"),
        missed_limit=given.get("missed_limit", MISSED_LIMIT),
        overlap=given.get("overlap", "allow"),
        jitter_seconds=_seconds("jitter", given.get("jitter")) or 0,
    )
    return Declaration(
        name=name,
        task=given["task"],
        plan=plan,
        policy=policy,
        args=tuple(given.get("args", ())),
        kwargs=dict(given.get("kwargs", {})),
        queue_name=given.get("queue_name") or "",
        priority=given.get("priority"),
        enabled=given.get("enabled", True),
    )


def parse_schedules(value: Any) -> tuple[Declaration, ...]:
    """Return the declarations in the option SCHEDULES.

    Raise ValueError if it is no dict of dicts, InvalidSchedule with all that is wrong in it.
    """
    if not isinstance(value, Mapping) or not all(isinstance(v, Mapping) for v in value.values()):
        raise ValueError("must be a dict of dicts: name to keywords")
    if len(value) > MAX_SCHEDULES:
        raise ValueError(f"must have at most {MAX_SCHEDULES:,} entries")
    declared: list[Declaration] = []
    errors: dict[str, str] = {}
    for name, given in value.items():
        try:
            declared.append(declaration(name, given))
        except InvalidSchedule as error:
            errors |= {f"{name!r} {keyword}": text for keyword, text in error.errors.items()}
    if errors:
        raise InvalidSchedule(errors)
    return tuple(declared)


def default_zone() -> str:
    """Return the time zone of schedules that name none: the project's."""
    return getattr(settings, "TIME_ZONE", None) or "UTC"


def name_problem(name: object) -> str | None:
    """Return why `name` cannot be the name of a schedule, None if it can."""
    if (
        isinstance(name, str)
        and 0 < len(name) <= MAX_SCHEDULE_NAME_LENGTH
        and name == name.strip()
        and name.isprintable()
    ):
        return None
    return f"must be text of 1 to {MAX_SCHEDULE_NAME_LENGTH} printable characters"


def _errors(name: Any, given: Mapping[str, Any]) -> list[tuple[str, str]]:
    errors = [
        (str(keyword), f"is unknown; known are {', '.join(KEYWORDS)}")
        for keyword in given
        if keyword not in KEYWORDS
    ]
    if (problem := name_problem(name)) is not None:
        errors.append(("name", problem))
    if not isinstance(given.get("task"), str) or "." not in given["task"]:
        errors.append(("task", "must be the dotted path of a task, such as shop.tasks.report"))
    if not _is_list(given.get("args", ())):
        errors.append(("args", "must be a list"))
    kwargs = given.get("kwargs", {})
    if not isinstance(kwargs, Mapping) or not all(isinstance(key, str) for key in kwargs):
        errors.append(("kwargs", "must be a dict with text keys"))
    if not isinstance(given.get("queue_name") or "", str):
        errors.append(("queue_name", "must be text"))
    if not _is_priority(given.get("priority")):
        errors.append(("priority", "must be a whole number from -100 to 100"))
    if not isinstance(given.get("enabled", True), bool):
        errors.append(("enabled", "must be True or False"))
    return errors


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_priority(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, int) and not isinstance(value, bool) and -100 <= value <= 100


def _seconds(keyword: str, value: Any) -> int | None:
    """Return whole seconds; what is none is left for the plan to refuse, but with our keyword."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise InvalidSchedule({keyword: "must be whole seconds, or a timedelta of them"})


def _time(keyword: str, value: Any, zone: str) -> datetime | None:
    if value is None:
        return None
    try:
        parsed = datetime.fromisoformat(value) if isinstance(value, str) else value
        if not isinstance(parsed, datetime):
            raise ValueError
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=zone_of(zone))
    except ValueError:
        raise InvalidSchedule(
            {keyword: f'must be a datetime, or text such as "2026-12-01T06:00", not {value!r:.80}'}
        ) from None
