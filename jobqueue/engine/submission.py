"""Jobs that a client asks for over a surface: checked in whole, then made, all or none.

    given = submit([Submission("shop.tasks.charge", kwargs={"order_id": 7})], actor, answer=...)

Only tasks that say so for the actor's surface; arguments must fit the task's signature and type
hints. Every flaw of every submission is told at once, each with its place (`InvalidSubmission`),
and nothing is stored then. The rest is as `enqueue` in Python: same rows, options, limits, unique
keys and signals; all through one TASKS alias. One transaction (`jobqueue.engine.idempotency`), and
`created_by` is the owner; an Action row where a person of the staff did it, none for a client.

Unique keys: a submission that meets a twin makes no job, and its result is the twin's, marked
`already_enqueued`; with `own_only` another owner's twin is UniqueKeyTaken instead, which says
nothing of that job and leaves it as it was, whatever `on_conflict` says. Two submissions of one
batch with the same key are one job.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS, InvalidTask
from jobqueue.engine.enqueue import creator
from jobqueue.engine.idempotency import Done, Given, once
from jobqueue.engine.making import exposed_task
from jobqueue.engine.mixed import Order, announce_enqueued, place
from jobqueue.engine.operations import Actor, Desk
from jobqueue.engine.signatures import escaped, misfits
from jobqueue.events import emit
from jobqueue.exceptions import (
    Flaw,
    InvalidArgument,
    InvalidExpires,
    InvalidSubmission,
    TaskNotExposed,
    UniqueKeyTaken,
    UnsupportedType,
)
from jobqueue.models import Job
from jobqueue.payload import encode_value
from jobqueue.results import JobResult
from jobqueue.storage import Storage
from jobqueue.storage.records import Deed, RequestKey, StoredAnswer
from jobqueue.tasks import JobTask

CLIENT = "api"
"""The surface of machines."""
MAX_SUBMISSIONS = 10_000
"""Jobs in one batch: it is one transaction, and a second or so long at that."""

Results = list[JobResult[..., Any]]
AnswerOf = Callable[[Results], StoredAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One job that is asked for; the options are those of `JobTask.using`. None: the task's own.

    pointer: where it lies in what the client sent, a JSON pointer, such as "/jobs/3".
    """

    task: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    queue_name: str | None = None
    priority: int | None = None
    run_after: datetime | timedelta | None = None
    expires: datetime | timedelta | None = None
    unique_key: str | None = None
    tags: Sequence[str] | None = None
    pointer: str = ""

    def options(self) -> dict[str, Any]:
        """Return the options that were given, by their name in `JobTask.using`."""
        names = ("queue_name", "priority", "run_after", "expires", "unique_key", "tags")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def submit(
    submissions: Sequence[Submission],
    actor: Actor,
    answer: AnswerOf,
    *,
    owner: str | None = None,
    request: RequestKey | None = None,
    own_only: bool = False,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
) -> Given:
    """Make the jobs, and return what `answer` says of their results, once both are committed.

    answer: called in the transaction with the results, in order. owner: `created_by` of the jobs,
    by default the actor's name. request: makes it idempotent; the answer to an earlier one is
    returned whatever is wrong with the submissions by now. own_only: the actor may not see the
    jobs of other owners. Raise InvalidSubmission, UniqueKeyTaken, KeyBusy, or as `once` does.
    """
    if not 0 < len(submissions) <= MAX_SUBMISSIONS:
        raise InvalidArgument(f"A batch has 1 to {MAX_SUBMISSIONS:,} jobs, not {len(submissions)}.")
    desk = Desk(actor, backend)
    made_by = actor.name if owner is None else owner
    # Before the transaction: it holds the key, and on SQLite everybody's write lock.
    orders, flaws = _checked(submissions, desk, made_by)

    def run(storage: Storage) -> Done:
        if flaws:
            raise InvalidSubmission(flaws)
        results = place(storage, orders)
        if own_only:
            _refuse_foreign(desk, submissions, results, made_by)
        announce_enqueued(results)
        return Done(answer(results), _deed(desk, results))

    return once(desk, request, run)


# --- checks ---------------------------------------------------------------------------------------


def _checked(
    submissions: Sequence[Submission], desk: Desk, owner: str
) -> tuple[list[Order], list[Flaw]]:
    """Return what to make, and every flaw there is."""
    orders: list[Order] = []
    flaws: list[Flaw] = []
    token = creator.set(owner)
    try:
        for submission in submissions:
            found = _order(submission, desk)
            if isinstance(found, Order):
                orders.append(found)
            else:
                flaws += [f._replace(pointer=submission.pointer + f.pointer) for f in found]
    finally:
        creator.reset(token)
    return orders, flaws


def _order(submission: Submission, desk: Desk) -> Order | list[Flaw]:
    """Return a submission as an order, or its flaws."""
    try:
        task = exposed_task(submission.task, desk.actor.surface)
    except TaskNotExposed as error:
        return [Flaw("/task", str(error), error.code)]
    args, kwargs = submission.args, submission.kwargs
    flaws = misfits(task, args, kwargs) or list(_unstorable(args, kwargs))
    variant, refused = _variant(task, submission.options() | {"backend": desk.backend})
    if variant is None or flaws:
        return flaws + refused
    try:
        return Order.of(variant, args, kwargs, desk.backend)
    except (TypeError, ValueError) as error:
        return [Flaw("", str(error), getattr(error, "code", InvalidArgument.code))]


def _unstorable(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Flaw]:
    """Yield each argument that a database cannot hold: NUL, lone surrogates, too deep."""
    places = [(f"/args/{n}", value) for n, value in enumerate(args)]
    places += [(f"/kwargs/{escaped(name)}", value) for name, value in kwargs.items()]
    for pointer, value in places:
        try:
            encode_value(value, sys.maxsize, "it")
        except (InvalidArgument, UnsupportedType) as error:
            yield Flaw(pointer, str(error), error.code)


def _variant(
    task: JobTask[..., Any], options: Mapping[str, Any]
) -> tuple[JobTask[..., Any] | None, list[Flaw]]:
    """Return the task with these options, or which of them it refuses."""
    try:
        return task.using(**options), []
    except (InvalidTask, TypeError, ValueError) as error:
        flaws = [flaw for name in options for flaw in _refused(task, name, options[name])]
        if not flaws and isinstance(error, InvalidExpires):  # only the two together are wrong
            flaws = [Flaw("/expires", "must lie behind run_after; both count from now.")]
        return None, flaws or [Flaw("", str(error))]


def _refused(task: JobTask[..., Any], name: str, value: Any) -> list[Flaw]:
    """Return what is wrong with one option taken alone."""
    try:
        task.using(**{name: value})
    except (InvalidTask, TypeError, ValueError) as error:
        return [Flaw(f"/{name}", str(error))]
    return []


# --- what was made --------------------------------------------------------------------------------


def _refuse_foreign(
    desk: Desk, submissions: Sequence[Submission], results: Results, owner: str
) -> None:
    """Raise UniqueKeyTaken if a twin was met that another owner has made."""
    twins = {UUID(result.id) for result in results if result.already_enqueued}
    if not twins:
        return
    made = Job.objects.using(desk.database).filter(pk__in=twins, created_by=owner)
    foreign = twins - set(made.values_list("pk", flat=True))
    flaws = [
        Flaw(f"{submission.pointer}/unique_key", "is held by another job.", UniqueKeyTaken.code)
        for submission, result in zip(submissions, results, strict=True)
        if UUID(result.id) in foreign
    ]
    if flaws:
        raise UniqueKeyTaken(flaws)


def _deed(desk: Desk, results: Results) -> Deed | None:
    """Tell of it later; return what is written down of it, None where nothing is.

    What operators do is written down. A job that a client made by itself is no deed of an
    operator: it says who made it and when, and a row beside each would outlive them all.
    """
    new = [result for result in results if not result.already_enqueued]
    if not new:
        return None
    tasks = sorted({result.task.module_path for result in new})
    job_id = UUID(new[0].id)
    target = tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks"
    actor = desk.actor
    desk.after_commit(
        lambda: emit(
            "job.enqueued",
            job=str(job_id),
            count=len(new),
            task=target,
            actor=actor.name,
            surface=actor.surface,
        )
    )
    if actor.surface == CLIENT:
        return None
    return Deed(actor.name, actor.surface, "enqueue", job_id, target, len(new))
