"""One change of many jobs: a compare-and-set that waits for no row lock, and what became of each.

A `Change` says which states a verb leaves and what it does; `jobqueue.engine.verbs` makes them.
`change_jobs` carries one out for ids that somebody named; `attempt` is one try, for whoever has
other means than to wait (`jobqueue.engine.bulk`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import batched
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from jobqueue.compat import signal_is_heard, task_finished
from jobqueue.engine.announcements import announce_finished
from jobqueue.engine.operations import (
    ASKED,
    LOCK_PAUSE_SECONDS,
    LOCK_TRIES,
    MAX_ROWS,
    Desk,
    Outcome,
    parse_ids,
)
from jobqueue.events import emit
from jobqueue.models import Job
from jobqueue.states import FINISHED, State
from jobqueue.storage import Storage
from jobqueue.storage.moving import SUPERSEDED

Ids = Iterable[UUID | str]
Apply = Callable[[Storage, Sequence[UUID]], Mapping[UUID, str]]

LOCKED, NOT_FOUND, REFUSED = "locked", "not found", "refused"
"""What became of a job that was not changed, beside "skipped: STATE". Refused: by a constraint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one verb does to jobs.

    done: the word for a job that was changed, such as "requeued". sources: the states it leaves;
    a row still in one of them after a try was locked. apply: changes those of the given ids that
    it can, and returns them with what happened, `done` or another word. follow: called with the
    changed ids in the transaction. detail: what the Action row says beside counts and reason.
    """

    verb: str
    done: str
    sources: Collection[State]
    apply: Apply
    follow: Callable[[Desk, Sequence[UUID]], None] | None = None
    reason: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)

    def has_changed(self, what: str) -> bool:
        """Return whether `what` happened to a job is a change by an operator."""
        return what in (self.done, ASKED, SUPERSEDED)

    @property
    def event(self) -> str:
        """The name of the event that tells of it."""
        return f"jobs.{self.done.replace(' ', '_')}"


def change_jobs(desk: Desk, change: Change, ids: Ids) -> Outcome:
    """Change the jobs in transactions of at most `MAX_ROWS`, each with its Action row."""
    wanted = parse_ids(ids)
    total = Outcome(change.done)

    def run(storage: Storage, chosen: Sequence[UUID]) -> Outcome:
        outcome = Outcome(change.done, _persist(storage, desk, change, chosen))
        changed = [job_id for job_id, what in outcome.results.items() if change.has_changed(what)]
        if changed:
            record(desk, change, outcome, changed, single=len(wanted) == 1)
            if change.follow is not None:
                change.follow(desk, changed)
        return outcome

    for chosen in batched(wanted, MAX_ROWS):
        total += desk.transact(partial(run, chosen=chosen))
    return total


def attempt(
    storage: Storage, desk: Desk, change: Change, ids: Sequence[UUID]
) -> tuple[dict[UUID, str], list[UUID]]:
    """Try once; return what happened to each id, and those whose rows were locked."""
    results = _applied(storage, desk, change, ids)
    left = [job_id for job_id in ids if job_id not in results]
    if left:
        moved = passed_over(desk, left, change.sources)
        results.update(moved)
        left = [job_id for job_id in left if job_id not in moved]
    return results, left


def _applied(storage: Storage, desk: Desk, change: Change, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Apply a change, in halves where a constraint refuses it, until what it refuses stands alone.

    One job that may not be changed (another holds its unique key) must not stop a thousand others.
    """
    try:
        with transaction.atomic(using=desk.database):  # the refusal ends a savepoint only
            return dict(change.apply(storage, ids))
    except IntegrityError:
        if len(ids) <= 1:
            return dict.fromkeys(ids, REFUSED)
    half = len(ids) // 2
    first = _applied(storage, desk, change, ids[:half])
    return first | _applied(storage, desk, change, ids[half:])


def passed_over(
    desk: Desk, ids: Sequence[UUID], sources: Collection[State] = ()
) -> dict[UUID, str]:
    """Return why jobs are not changed that are in none of `sources`: what they are now."""
    states = dict(jobs(desk, ids).values_list("id", "state"))
    return {
        job_id: f"skipped: {states[job_id]}" if job_id in states else NOT_FOUND
        for job_id in ids
        if states.get(job_id) not in sources
    }


def jobs(desk: Desk, ids: Sequence[UUID]) -> QuerySet[Job]:
    """Return the rows of `ids`."""
    return Job.objects.using(desk.database).filter(id__in=ids)


def _persist(
    storage: Storage, desk: Desk, change: Change, chosen: Sequence[UUID]
) -> dict[UUID, str]:
    """Return what happened to each id; rows that are locked are tried a few times."""
    results: dict[UUID, str] = {}
    left = list(chosen)
    for tried in range(LOCK_TRIES):
        if tried:
            time.sleep(LOCK_PAUSE_SECONDS)
        more, left = attempt(storage, desk, change, left)
        results.update(more)
        if not left:
            break
    results.update(dict.fromkeys(left, LOCKED))
    return {job_id: results[job_id] for job_id in chosen}


def record(
    desk: Desk, change: Change, outcome: Outcome, changed: Sequence[UUID], *, single: bool
) -> None:
    """Write the Action row of a change, and tell of it after the commit."""
    detail: dict[str, object] = {"backend": desk.backend, "counts": outcome.counts}
    detail |= change.detail
    if change.reason:
        detail["reason"] = change.reason
    if not single:
        detail["ids"] = [str(job_id) for job_id in changed]
    desk.record(
        change.verb,
        len(changed),
        target=str(changed[0]) if single else f"{len(changed)} jobs",
        job_id=changed[0] if single else None,
        detail=detail,
    )
    tell(desk, change, outcome.counts.get(change.done, 0), outcome.counts.get(ASKED, 0))


def tell(desk: Desk, change: Change, count: int, asked: int = 0) -> None:
    """Emit the event of a change after the commit; of running jobs that were asked, another."""
    facts: dict[str, Any] = {"actor": desk.actor.name, "surface": desk.actor.surface}
    if count:
        desk.after_commit(lambda: emit(change.event, count=count, **facts))
    if asked:
        desk.after_commit(lambda: emit("jobs.asked", count=asked, verb=change.verb, **facts))


# --- what may follow, in the transaction ----------------------------------------------------------


def send_hints(desk: Desk, changed: Sequence[UUID]) -> None:
    """Hint at the queues of the changed jobs that are ready: a claim may have passed them over."""
    ready = jobs(desk, changed).filter(state=State.READY)
    desk.hint(set(ready.values_list("queue", flat=True)))


def announce_ends(desk: Desk, changed: Sequence[UUID]) -> None:
    """Send task_finished for jobs that have now ended, if anybody listens."""
    rows = jobs(desk, changed).filter(state__in=FINISHED)  # not those that were only asked
    ended = list(rows.values_list("backend", "id"))

    def send() -> None:
        if signal_is_heard(task_finished):
            for alias, job_id in ended:
                announce_finished(alias, job_id)

    desk.after_commit(send)
