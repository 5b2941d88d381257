"""The numbers of limits as operators see and change them; they act on jobs that wait already.

An operator's numbers hold until somebody resets them, whatever the code says meanwhile. Raised
ones let parked jobs start within a poll (the sweep); lowered ones let running jobs go on, and
nobody start until there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Value
from django.db.models.functions import Concat, Now, StrIndex, Substr

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import options_for
from jobqueue.engine.operations import Actor, Desk, Outcome
from jobqueue.engine.queues import MAX_REASON_LENGTH, check_name
from jobqueue.events import emit
from jobqueue.exceptions import InvalidArgument
from jobqueue.limits import MAX_KEY_LENGTH, QUEUE, check_numbers
from jobqueue.models import Job, Limit
from jobqueue.payload import storable_text
from jobqueue.states import State
from jobqueue.storage import Storage

MAX_LISTED = 1_000
"""Limits that are listed; more would help nobody."""
_BLANK = {"running": None, "rate": None, "per": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitStatus:
    """One limit: its numbers, who set them if not the code, and how many jobs are under it now.

    key: a name, which stands for all of its keys, one key of it, or "queue:NAME". code: the numbers
    that the code says, None if it says nothing. blocked: jobs that wait for room; those of a full
    queue are not blocked but left ready.
    """

    key: str
    running: int | None
    rate: int | None
    per: float | None
    code: tuple[int | None, int | None, float | None] | None
    set_by: str
    set_at: datetime | None
    reason: str
    running_now: int
    blocked_now: int


def set_limit(
    key: str,
    actor: Actor,
    *,
    running: int | None = None,
    rate: int | None = None,
    per: float | None = None,
    reason: str = "",
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> Outcome:
    """Give a limit these numbers instead of those it has: at most `running` jobs of a key at once,
    at most `rate` starts in `per` seconds; None: no such bound. 0 running stops the key.

    key: the name of a limit, one of its keys ("customer:42"), or "queue:NAME". Raise
    InvalidArgument for a name that nobody has, or numbers that are none.
    """
    try:
        check_numbers(running, rate, per)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{error}.") from None
    if running is None and rate is None:
        raise InvalidArgument("Give running, or rate and per; lift the limit to have none.")
    numbers = {"running": running, "rate": rate, "per": per}
    return _change("set_limit", "set", key, actor, reason, backend, numbers)


def lift_limit(
    key: str, actor: Actor, *, reason: str = "", backend: str = DEFAULT_TASK_BACKEND_ALIAS
) -> Outcome:
    """Let any number of jobs start, until somebody sets or resets the limit."""
    return _change("lift_limit", "lifted", key, actor, reason, backend, _BLANK)


def reset_limit(key: str, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> Outcome:
    """Let the numbers of the code hold again; one key of a limit has those of its name again."""
    _check_key(key)
    desk = Desk(actor, backend)

    def run(storage: Storage) -> bool:
        rows = Limit.objects.using(desk.database).filter(key=key).exclude(set_by="")
        changed = rows.filter(source="", key__contains=":").exclude(key__startswith=f"{QUEUE}:")
        count = changed.delete()[0] or rows.update(
            running=F("code_running"), rate=F("code_rate"), per=F("code_per"),
            set_by="", set_at=None, set_reason="",
        )  # fmt: skip
        if count:
            storage.flag_queues()
            _told(desk, "reset_limit", key, {})
        return bool(count)

    return _outcome("reset", desk.transact(run))


def limits(
    backend: str = DEFAULT_TASK_BACKEND_ALIAS, *, keys: Collection[str] | None = None
) -> list[LimitStatus]:
    """Return the limits that anybody has set or the code says, by key, with what is under them.

    keys: only these; then only the jobs under them are counted.
    """
    database = options_for(backend).database
    found = Limit.objects.using(database).order_by("key")
    if keys is not None:
        found = found.filter(key__in=keys)
    rows = list(found[:MAX_LISTED])
    counts = _counts(database, [row.key for row in rows], are_all=keys is None)
    return [_status(row, counts) for row in rows]


# --- one change -----------------------------------------------------------------------------------


def _change(
    verb: str,
    done: str,
    key: str,
    actor: Actor,
    reason: str,
    backend: str,
    numbers: Mapping[str, Any],
) -> Outcome:
    _check_key(key)
    desk = Desk(actor, backend)
    reason = reason[:MAX_REASON_LENGTH]

    def run(storage: Storage) -> bool:
        rows = Limit.objects.using(desk.database)
        _check_known(rows, key)
        rows.bulk_create([Limit(key=key)], ignore_conflicts=True)
        changed = rows.filter(key=key).exclude(set_by=actor.name, set_reason=reason, **numbers)
        count = changed.update(**numbers, set_by=actor.name, set_at=Now(), set_reason=reason)
        if count:
            storage.flag_queues()
            given = {name: value for name, value in numbers.items() if value is not None}
            _told(desk, verb, key, given | ({"reason": reason} if reason else {}))
        return bool(count)

    return _outcome(done, desk.transact(run))


def _told(desk: Desk, verb: str, key: str, detail: Mapping[str, Any]) -> None:
    desk.record(verb, 1, target=key, detail=detail or None)
    if key.startswith(f"{QUEUE}:"):
        desk.hint({key.removeprefix(f"{QUEUE}:")})
    actor = desk.actor
    facts = {name: value for name, value in detail.items() if name != "reason"}
    desk.after_commit(lambda: emit("limit.changed", key=key, verb=verb, actor=actor.name, **facts))


def _outcome(done: str, is_changed: bool) -> Outcome:
    return Outcome(done, given_counts={done if is_changed else "skipped: nothing to change": 1})


def _check_key(key: object) -> None:
    if isinstance(key, str) and key.startswith(f"{QUEUE}:"):
        check_name(key.removeprefix(f"{QUEUE}:"))
        return
    is_text = isinstance(key, str) and 0 < len(key) <= MAX_KEY_LENGTH
    if not is_text or storable_text(str(key), 4 * MAX_KEY_LENGTH) != key or key == QUEUE:
        raise InvalidArgument(
            f"The key of a limit is its name, one of its keys, or {QUEUE}:NAME, not {key!r:.300}."
        )


def _check_known(rows: QuerySet[Limit], key: str) -> None:
    """Raise InvalidArgument for a name that nobody has: it is a slip, and would limit nothing."""
    name = key.partition(":")[0]
    if name == QUEUE or rows.filter(key=name).exists():
        return
    known = list(rows.exclude(source="").order_by("key").values_list("key", flat=True)[:20])
    names = [each for each in known if not each.startswith(f"{QUEUE}:")]
    raise InvalidArgument(
        f"There is no limit {name!r}: a task has to have it, and a worker to have started since. "
        f"There {'is' if len(names) == 1 else 'are'} {', '.join(names) or 'none'}; the limit of a "
        f"queue is {QUEUE}:NAME."
    )


# --- what is under them ---------------------------------------------------------------------------

Counts = dict[tuple[str, str], int]


def _status(row: Limit, counts: Counts) -> LimitStatus:
    is_coded = bool(row.source)
    return LimitStatus(
        key=row.key,
        running=row.running,
        rate=row.rate,
        per=row.per,
        code=(row.code_running, row.code_rate, row.code_per) if is_coded else None,
        set_by=row.set_by,
        set_at=row.set_at,
        reason=row.set_reason,
        running_now=counts.get((row.key, State.RUNNING), 0),
        blocked_now=counts.get((row.key, State.BLOCKED), 0),
    )


def _counts(database: str, keys: Sequence[str], *, are_all: bool) -> Counts:
    """Return how many jobs run and are blocked under each of `keys`, by key and state.

    are_all: there are no others, so that every job with a limit counts.
    """
    jobs = Job.objects.using(database)
    live = jobs.filter(limit_key__isnull=False, state__in=[State.RUNNING, State.BLOCKED])
    live = live.exclude(state=State.BLOCKED, reason__gt="limit").exclude(
        state=State.BLOCKED, reason__lt="limit"
    )
    colon = StrIndex(Concat("limit_key", Value(":")), Value(":"))
    by_name = live.annotate(limit_name=Substr("limit_key", 1, colon - 1))
    single = [key for key in keys if ":" in key]
    names = [key for key in keys if ":" not in key]
    if not are_all:
        by_name = by_name.filter(_of_names(names))
    queues = [key.removeprefix(f"{QUEUE}:") for key in single if key.startswith(f"{QUEUE}:")]
    found = _grouped(by_name, "limit_name", str) if names else {}
    found |= _grouped(live.filter(limit_key__in=single), "limit_key", str)
    running = jobs.filter(state=State.RUNNING, queue__in=queues)
    return found | _grouped(running, "queue", lambda queue: f"{QUEUE}:{queue}")


def _of_names(names: Sequence[str]) -> Q:
    """Return what the keys of these names have in common."""
    chosen = Q(limit_key__in=names)
    for name in names:
        chosen |= Q(limit_key__startswith=f"{name}:")
    return chosen


def _grouped(rows: QuerySet[Job], by: str, named: Callable[[str], str]) -> Counts:
    grouped = rows.values_list(by, "state").annotate(count=Count("id"))
    return {(named(key), state): count for key, state, count in grouped}
