"""Carrying out bulk operations: one bounded step, by whoever has a moment. No leader.

A step is one transaction: it takes the operation's row (SKIP LOCKED, so that two processes work
on two operations), changes at most `MAX_ROWS` jobs, and moves the cursor. Ids are walked upward
once, so each job has its turn once; a row that is locked is tried again at the end, a few times,
and then reported.

What a process leaves behind that dies here …
- before the COMMIT: nothing; the next step does the same again.
- after it: the cursor where it is. Hints and announcements of that step may be lost: workers poll.
A connection lost around COMMIT needs no finding out: the row says where the walk stands.

An operation whose steps fail is tried again with growing pauses, and has failed after
`MAX_FAILURES`: its row says why, and it can be resumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F

from jobqueue.engine.aliases import aliases_of
from jobqueue.engine.bulk_plan import Dues, change_of
from jobqueue.engine.bulk_walk import choice_of, next_ids
from jobqueue.engine.changes import LOCKED, Change, attempt, passed_over, tell
from jobqueue.engine.operations import ASKED, MAX_ROWS, Actor, Desk
from jobqueue.events import emit
from jobqueue.exceptions import RowLocked
from jobqueue.models import Action, BulkOperation, BulkState
from jobqueue.payload import storable_text
from jobqueue.states import State
from jobqueue.storage import Storage

PAUSES_SECONDS = (1.0, 5.0, 15.0)
"""Before each try at the rows that were locked."""
MAX_LEFT = MAX_ROWS
"""Locked rows that are remembered, to be tried again in one step; more are reported at once."""
MAX_FAILURES = 5
MAX_ERROR_BYTES = 2_000


def run_step(
    backend: str, only: int | None = None, now: datetime | None = None
) -> BulkOperation | None:
    """Carry out a step of the operation whose turn it is; return it, None if none can have one.

    Operations of every alias that lives in the database of `backend` are looked at. only: a
    certain one. now: moves the clock in tests. Never raise for what lies in the operation itself.
    """
    desk = Desk(Actor("bulk", "shell"), backend)
    taken: list[BulkOperation] = []

    def run(storage: Storage) -> BulkOperation | None:
        clock = now or storage.clock()
        operation = _take(desk, clock, only)
        taken[:] = [] if operation is None else [operation]
        if operation is not None:
            _Step(operation, storage, clock).carry_out()
        return operation

    try:
        return desk.transact(run)
    except RowLocked:
        return None  # somebody holds what the step needs; the next one may be luckier
    except Exception as error:
        if not taken:
            raise
        return _failed(desk, taken[0], error, now)


def _take(desk: Desk, clock: datetime, only: int | None) -> BulkOperation | None:
    """Lock and return the running operation whose last step is longest ago."""
    rows = BulkOperation.objects.using(desk.database).filter(
        state=BulkState.RUNNING, backend__in=aliases_of(desk.database)
    )
    rows = rows.filter(wait_until__isnull=True) | rows.filter(wait_until__lte=clock)
    if only is not None:
        rows = rows.filter(id=only)
    rows = rows.select_for_update(skip_locked=True, no_key=True)
    return rows.order_by("stepped_at", "id").first()


def _failed(
    desk: Desk, operation: BulkOperation, error: Exception, now: datetime | None
) -> BulkOperation:
    """Write down that a step failed; raise `error` itself if not even that can be done."""
    failures = operation.failures + 1
    is_over = failures >= MAX_FAILURES
    text = storable_text(f"{type(error).__name__}: {error}", MAX_ERROR_BYTES)

    def run(storage: Storage) -> None:
        pause = timedelta(seconds=2.0**failures)
        rows = BulkOperation.objects.using(desk.database).filter(pk=operation.pk)
        rows.filter(state=BulkState.RUNNING).update(
            failures=failures,
            error=text,
            wait_until=(now or storage.clock()) + pause,
            **({"state": BulkState.FAILED} if is_over else {}),
        )

    desk.transact(run)
    what = "bulk.failed" if is_over else "bulk.failing"
    emit(what, level=30, operation=operation.pk, verb=operation.verb, error=text)
    operation.refresh_from_db()
    return operation


class _Step:
    """One step of one operation, in the transaction that holds its row."""

    def __init__(self, operation: BulkOperation, storage: Storage, clock: datetime) -> None:
        self._operation = operation
        self._storage = storage
        self._clock = clock
        self._desk = Desk(Actor(operation.actor, operation.surface), operation.backend)
        self._changed = 0

    def carry_out(self) -> None:
        """Give the next jobs their turn, and write down how far the operation is."""
        operation = self._operation
        if operation.total_is_capped and "spread" in operation.parameters:
            self._count_all()
        if operation.walked:
            self._try_again()
        else:
            self._walk()
        operation.stepped_at = self._clock
        operation.failures, operation.error = 0, ""
        operation.save()
        if self._changed:
            actions = Action.objects.using(self._desk.database).filter(pk=operation.action)
            actions.update(count=F("count") + self._changed)

    def _count_all(self) -> None:
        """Count to the last, once: to spread them evenly the number must be known.

        Here, as whoever began the operation was not to wait for it.
        """
        self._operation.total = choice_of(self._operation).jobs(self._desk.database).count()
        self._operation.total_is_capped = False

    # --- the walk -----------------------------------------------------------------------------

    def _walk(self) -> None:
        operation = self._operation
        ids = next_ids(operation, self._desk.database)
        if ids:
            dues = self._dues(ids)
            operation.seen += len(ids)
            locked = self._change(ids, dues)
            room = MAX_LEFT - len(operation.left)
            operation.left = [*operation.left, *(job_id.hex for job_id in locked[:room])]
            self._count({LOCKED: len(locked[room:])})
        if operation.walked:
            self._rest()

    # --- those that were locked ---------------------------------------------------------------

    def _try_again(self) -> None:
        operation = self._operation
        ids = [UUID(job_id) for job_id in operation.left]
        operation.left = [job_id.hex for job_id in self._change(ids, self._dues(ids, late=True))]
        operation.passes += 1
        self._rest()

    def _rest(self) -> None:
        """End the operation, or wait before the next try at what is locked."""
        operation = self._operation
        if operation.left and operation.passes < len(PAUSES_SECONDS):
            pause = timedelta(seconds=PAUSES_SECONDS[operation.passes])
            operation.wait_until = self._clock + pause
            return
        self._count({LOCKED: len(operation.left)})
        operation.state = BulkState.FINISHED
        operation.ended_at = self._clock
        facts = {"operation": operation.pk, "verb": operation.verb, "counts": operation.counts}
        self._desk.after_commit(lambda: emit("bulk.finished", **facts))

    # --- changing -----------------------------------------------------------------------------

    def _change(self, ids: Sequence[UUID], dues: Dues | None) -> list[UUID]:
        """Change what can be changed; return those whose rows were locked."""
        operation = self._operation
        change = change_of(self._desk, operation.verb, operation.parameters, dues)
        if operation.ids is None:
            results, locked = self._attempt_matching(change, ids)
        else:
            results, locked = attempt(self._storage, self._desk, change, ids)
        self._count(Counter(results.values()))
        changed = [job_id for job_id, what in results.items() if change.has_changed(what)]
        if changed:
            self._follow(change, changed, asked=list(results.values()).count(ASKED))
        return locked

    def _attempt_matching(
        self, change: Change, ids: Sequence[UUID]
    ) -> tuple[dict[UUID, str], list[UUID]]:
        """Change what still matches once its row is locked; return as `attempt` does.

        A job that somebody else has led to another state since it was read may be in one that the
        verb leaves, too, but that the filter does not name.
        """
        matching = choice_of(self._operation).jobs(self._desk.database)
        matching_ids = matching.order_by("id").values_list("id", flat=True)
        matching_ids = matching_ids.filter(id__in=ids)
        waiting = matching_ids.exclude(state=State.RUNNING)
        held = list(waiting.select_for_update(skip_locked=True, no_key=True))
        if State.RUNNING in change.sources:
            # Only to be asked, which needs no lock, and must not keep a worker from its finish.
            held += matching_ids.filter(state=State.RUNNING)
        results, left = attempt(self._storage, self._desk, change, sorted(held))
        others = [job_id for job_id in ids if job_id not in results and job_id not in left]
        if others:
            left += matching_ids.filter(id__in=others)
            moved = [job_id for job_id in others if job_id not in left]
            results |= passed_over(self._desk, moved)
        return results, left

    def _follow(self, change: Change, changed: Sequence[UUID], asked: int) -> None:
        self._changed += len(changed)
        tell(self._desk, change, len(changed) - asked, asked)
        if change.follow is not None:
            change.follow(self._desk, changed)

    def _count(self, found: dict[str, int]) -> None:
        counts = Counter(self._operation.counts)
        counts.update({what: n for what, n in found.items() if n})
        self._operation.counts = dict(counts)

    def _dues(self, ids: Sequence[UUID], late: bool = False) -> Dues | None:
        """Return when each job is due, None for at once.

        Evenly from `paced_from` on. What comes late, because the operation was stopped or nobody
        carried it out, moves the rest back: they would all be due together otherwise.
        """
        operation, parameters = self._operation, self._operation.parameters
        if "spread" not in parameters and "run_at" not in parameters:
            return None
        given = parameters.get("run_at")
        start = operation.paced_from or (
            datetime.fromisoformat(given) if given else operation.began_at
        )
        gap = parameters.get("spread", 0.0) / max(operation.total, 1)
        first = operation.total if late else operation.seen
        if gap and not late:
            start = max(start, self._clock - timedelta(seconds=first * gap))
            operation.paced_from = start
        return {
            job_id: start + timedelta(seconds=min(first + n, operation.total) * gap)
            for n, job_id in enumerate(ids)
        }
