"""Bulk operations, as operators have them: preview, start, stop, resume.

    operation = start("requeue", actor, filter="state:dead error:ConnectionError", spread=600)

An operation is a row. Its jobs are those that match when it begins and still do when their turn
comes; `jobqueue.engine.bulk_steps` carries it out. Each job has its turn once, however often the
operation is stopped and resumed, and by the same rules as one by one: what cannot be done to a
job is counted, with why, and is nobody's error.

Stopping takes effect between two steps; what has been done stays done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Count, QuerySet
from django.utils import timezone

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.engine.bulk_plan import BULK_VERBS, Choice, check_choice
from jobqueue.engine.operations import Actor, Desk, parse_ids
from jobqueue.engine.verbs import check_priority, check_queue, checked_moment
from jobqueue.events import emit
from jobqueue.exceptions import BulkOperationNotFound, InvalidArgument, WrongState
from jobqueue.filters import bindings_of, parse, pinned
from jobqueue.models import Action, BulkOperation, BulkState
from jobqueue.plan import LATEST
from jobqueue.states import State
from jobqueue.storage import Storage

Ids = Iterable[UUID | str]

COUNT_CAP = 100_000
"""Jobs that are counted before an operation begins: enough to know what one is about to do."""
MAX_BULK_IDS = 10_000
"""Ids that one operation names; more are said with a filter."""
MAX_SPREAD_SECONDS = 30 * 86_400.0
TOP_GROUPS = 10
"""Tasks and queues that a preview lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What an operation would be about. is_capped: there are more than `count`."""

    verb: str
    filter: str
    count: int
    is_capped: bool
    by_state: Mapping[str, int] = field(default_factory=dict)
    by_queue: Mapping[str, int] = field(default_factory=dict)
    by_task: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return for example "12 jobs", or "more than 100,000 jobs"."""
        more = "more than " * self.is_capped
        return f"{more}{self.count:,} job{'s' * (self.count != 1)}"


def preview(
    verb: str,
    *,
    filter: str | None = None,
    ids: Ids | None = None,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> Preview:
    """Return what `start` would be about; it counts up to `COUNT_CAP` and changes nothing."""
    desk = Desk(Actor("preview", "shell"), backend)
    choice = _choice(desk, verb, filter, ids)
    jobs = choice.jobs(desk.database)
    found = _count(jobs, COUNT_CAP + 1)
    count = min(found, COUNT_CAP)
    some = jobs.values("id")[:COUNT_CAP]
    groups = jobs.model.objects.using(desk.database).filter(id__in=some)
    return Preview(
        verb=verb,
        filter=str(choice.chosen or ""),
        count=count,
        is_capped=found > COUNT_CAP,
        by_state=_of_only(choice.states, count) or _top(groups, "state"),
        by_queue=_top(groups, "queue"),
        by_task=_top(groups, "task"),
    )


def _of_only(states: frozenset[State], count: int) -> dict[str, int]:
    """Return how many jobs there are by state where one state alone is asked for: no query."""
    return {state.value: count for state in states} if len(states) == 1 and count else {}


def start(
    verb: str,
    actor: Actor,
    *,
    filter: str | None = None,
    ids: Ids | None = None,
    run_at: datetime | timedelta | None = None,
    spread: float | timedelta | None = None,
    priority: int | None = None,
    queue: str | None = None,
    reason: str = "",
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> BulkOperation:
    """Begin to do `verb` to all jobs that `filter` matches, or that `ids` names.

    run_at: when they are due (requeue, reschedule). spread: seconds over which their due times
    are spread evenly. priority, queue: what reprioritize and move need. reason: for cancel and
    discard. Raise InvalidArgument for what cannot be; nothing has begun then.
    """
    desk = Desk(actor, backend)
    choice = _choice(desk, verb, filter, ids)
    given = {"run_at": run_at, "spread": spread, "priority": priority, "queue": queue}
    given = {name: value for name, value in given.items() if value is not None}
    parameters = _parameters(desk, verb, given | ({"reason": reason} if reason else {}))
    count = len(choice.ids) or _count(choice.jobs(desk.database), COUNT_CAP + 1)
    return desk.transact(lambda storage: _insert(desk, choice, parameters, count))


def stop(operation_id: int, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> None:
    """Stop an operation after the step it is in. Raise WrongState if it is not running."""
    _turn(
        Desk(actor, backend),
        operation_id,
        "stop",
        {BulkState.RUNNING},
        {"state": BulkState.STOPPED},
    )


def resume(operation_id: int, actor: Actor, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> None:
    """Let an operation that was stopped, or that failed, go on where it was."""
    _turn(
        Desk(actor, backend),
        operation_id,
        "resume",
        {BulkState.STOPPED, BulkState.FAILED},
        {"state": BulkState.RUNNING, "failures": 0, "error": "", "wait_until": None},
    )


def find(operation_id: int, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> BulkOperation:
    """Return an operation as it is now. Raise BulkOperationNotFound."""
    desk = Desk(Actor("find", "shell"), backend)
    found = BulkOperation.objects.using(desk.database).filter(id=operation_id).first()
    if found is None:
        raise BulkOperationNotFound(f"There is no bulk operation {operation_id}.")
    return found


def recent(*, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> QuerySet[BulkOperation]:
    """Return the operations, the newest first, without their lists of ids."""
    desk = Desk(Actor("recent", "shell"), backend)
    return BulkOperation.objects.using(desk.database).defer("ids", "left").order_by("-id")


# --- what is asked for ----------------------------------------------------------------------------


def _choice(desk: Desk, verb: str, filter: str | None, ids: Ids | None) -> Choice:
    if verb not in BULK_VERBS:
        raise InvalidArgument(f"{verb!r} is not done in bulk; {', '.join(BULK_VERBS)} are.")
    if (filter is None) == (ids is None):
        raise InvalidArgument("Say which jobs, with a filter or with ids, not both.")
    began = desk.storage().clock()
    if filter is None:
        wanted = parse_ids(ids or ())
        if not 1 <= len(wanted) <= MAX_BULK_IDS:
            raise InvalidArgument(f"Give 1 to {MAX_BULK_IDS:,} ids, or a filter.")
        return Choice(verb=verb, began=began, bindings={}, ids=wanted)
    written = pinned(parse(filter), began, timezone.get_current_timezone())
    chosen = parse(str(written))  # as it will be read again: longer, with its times written out
    choice = Choice(verb=verb, began=began, chosen=chosen, bindings=bindings_of(chosen))
    check_choice(choice)
    return choice


def _parameters(desk: Desk, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters as they are stored; raise InvalidArgument for a wrong one."""
    known = BULK_VERBS[verb]
    missing = known.needs - set(given)
    unknown = set(given) - known.needs - known.takes
    if missing or unknown:
        wrong = f"needs {', '.join(sorted(missing))}" if missing else ""
        wrong = wrong or f"takes no {', '.join(sorted(unknown))}"
        raise InvalidArgument(f"{verb} {wrong}.")
    found = dict(given)
    if "priority" in given:
        check_priority(given["priority"])
    if "queue" in given:
        check_queue(desk.backend, given["queue"])
    if "spread" in given:
        found["spread"] = _spread(given["spread"])
    if "run_at" in given:
        moment = checked_moment(desk, given["run_at"])
        if moment + timedelta(seconds=found.get("spread", 0)) > LATEST:
            raise InvalidArgument("The last of them would be due after the year 9999.")
        found["run_at"] = moment.isoformat()
    return found


def _spread(given: object) -> float:
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < float(seconds) <= MAX_SPREAD_SECONDS:  # type: ignore[arg-type]
        raise InvalidArgument(
            f"Jobs are spread over at most {MAX_SPREAD_SECONDS / 86_400:.0f} days, not {given!r}."
        )
    return float(seconds)  # type: ignore[arg-type]


def _count(jobs: QuerySet[Any], most: int) -> int:
    return jobs.order_by()[:most].count()


def _top(jobs: QuerySet[Any], column: str) -> dict[str, int]:
    groups = jobs.order_by().values_list(column).annotate(count=Count("id"))
    return dict(groups.order_by("-count", column)[:TOP_GROUPS])


# --- writing --------------------------------------------------------------------------------------


def _insert(desk: Desk, choice: Choice, parameters: Mapping[str, Any], count: int) -> BulkOperation:
    is_capped = count > COUNT_CAP
    detail: dict[str, Any] = {"backend": desk.backend, "parameters": dict(parameters)}
    detail |= {"filter": str(choice.chosen)} if choice.chosen else {"ids": len(choice.ids)}
    action = desk.record(f"bulk {choice.verb}", 0, target="bulk operation", detail=detail)
    operation = BulkOperation.objects.using(desk.database).create(
        backend=desk.backend,
        verb=choice.verb,
        filter=str(choice.chosen or ""),
        bindings=choice.bindings,
        ids=[job_id.hex for job_id in choice.ids] if choice.chosen is None else None,
        parameters=dict(parameters),
        actor=desk.actor.name,
        surface=desk.actor.surface,
        action=action.pk,
        began_at=choice.began,
        stepped_at=choice.began,
        total=min(count, COUNT_CAP) if is_capped else count,
        total_is_capped=is_capped,
    )
    actions = Action.objects.using(desk.database).filter(pk=action.pk)
    actions.update(target=f"bulk operation {operation.pk}")
    _tell(desk, "started", operation)
    return operation


def _turn(
    desk: Desk, operation_id: int, verb: str, sources: set[BulkState], changes: Mapping[str, Any]
) -> None:
    """Lead an operation to another state by compare-and-set, with its Action row."""

    def run(storage: Storage) -> bool:
        rows = BulkOperation.objects.using(desk.database).filter(id=operation_id)
        if not rows.filter(state__in=sources).update(**changes):
            return False
        desk.record(f"{verb} bulk", 1, target=f"bulk operation {operation_id}")
        done = {"stop": "stopped", "resume": "resumed"}[verb]
        _tell(desk, done, rows.get())
        return True

    if not desk.transact(run):
        state = find(operation_id, backend=desk.backend).state
        raise WrongState(
            f"Bulk operation {operation_id} is {state}, so it cannot {verb}.",
            current_state=state,
        )


def _tell(desk: Desk, what: str, operation: BulkOperation) -> None:
    facts = {"operation": operation.pk, "verb": operation.verb, "total": operation.total}
    actor = desk.actor
    desk.after_commit(partial(_emit, f"bulk.{what}", facts, actor))


def _emit(name: str, facts: Mapping[str, Any], actor: Actor) -> None:
    emit(name, **facts, actor=actor.name, surface=actor.surface)
