"""Back to waiting, on PostgreSQL: ends of attempts and requeues, of jobs with unique keys too.

Most jobs have none, and are written in one statement that passes the others over. For those it is
found out who holds their keys; who gives way is ended first; and the partial unique index has the
last word: a twin that was committed in between, or is just being made in an open transaction,
makes the statement fail. Then it is tried again in halves, down to single jobs, so that no job
fails for another; each wait is bounded, and what an open transaction still blocks is left.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import DatabaseError, IntegrityError

from jobqueue.storage.errors import LOCK_NOT_AVAILABLE, sqlstate
from jobqueue.storage.moving import as_superseded, ended_jobs, judge, suspicions_to_pass
from jobqueue.storage.postgres_unique import PostgresUnique
from jobqueue.storage.protocol import ids_of
from jobqueue.storage.records import EndedJob, Ending, Fenced, Mover, Moves
from jobqueue.storage.rows import ending_row
from jobqueue.storage.statements import statement

MOVE_WAIT_SECONDS = 0.05
"""How long one try waits for a transaction that is making a twin: most commit within it."""
MOVE_SECONDS = 0.5
"""How long one call goes on trying; the fetch loop must turn, and calls again in a moment."""


class PostgresMoving(PostgresUnique):
    """The protocol's methods that lead jobs to where they hold their unique keys again."""

    def end_many(
        self, endings: Sequence[Ending], now: datetime | None = None
    ) -> Moves[tuple[UUID, int]]:
        moves = Moves[Fenced]()
        passed_over: set[UUID] = set()
        for job_id, fence, takes_key in self._end_attempts(endings, now, "AND NOT l.takes_key"):
            if takes_key:
                passed_over.add(job_id)
            else:
                moves.append((job_id, fence))
        if passed_over:
            left = self._by_parts(
                [ending for ending in endings if ending.id in passed_over],
                lambda part: self._end_unique(part, now),
                moves,
            )
            moves += [(ending.id, ending.fence) for ending in left]
        return moves

    def requeue_many(
        self,
        ids: Sequence[UUID],
        aging_seconds: float,
        dues: Sequence[datetime] | None = None,
        now: datetime | None = None,
    ) -> Moves[UUID]:
        due_of: dict[UUID, datetime | None] = dict.fromkeys(ids)
        if dues is not None:
            due_of.update(zip(ids, dues, strict=True))
        moves = Moves(self._requeue(due_of, aging_seconds, now, "AND unique_key IS NULL"))
        done = set(moves)
        rest = [job_id for job_id in ids if job_id not in done]
        if rest and (movers := self._rows("find_requeued", ids=rest, now=now)):
            self._by_parts(
                [mover[0] for mover in movers],
                lambda part: self._requeue_unique(
                    {job_id: due_of[job_id] for job_id in part}, aging_seconds, now
                ),
                moves,
            )
        return moves

    # --- one try ----------------------------------------

    def _end_unique(self, endings: Sequence[Ending], now: datetime | None) -> Moves[Fenced]:
        with self._short_waits(MOVE_WAIT_SECONDS):
            rows = json.dumps([_guard(ending) for ending in endings])
            found = self._rows("find_movers", rows=rows, ids=ids_of(endings), now=now)
            movers = [Mover._make(row) for row in found]
            superseded, ended = self._make_way(movers, now)
            self._pass_on(suspicions_to_pass(endings, movers, superseded))
            chosen = [as_superseded(e) if e.id in superseded else e for e in endings]
            unmatched = [(row[0], row[1]) for row in self._end_attempts(chosen, now, "")]
        return Moves(unmatched, ended + ended_jobs(movers, superseded))

    def _requeue_unique(
        self, dues: Mapping[UUID, datetime | None], aging_seconds: float, now: datetime | None
    ) -> Moves[UUID]:
        with self._short_waits(MOVE_WAIT_SECONDS):
            found = self._rows("find_requeued", ids=list(dues), now=now)
            movers = [Mover._make(row) for row in found]
            superseded, ended = self._make_way(movers, now)
            if superseded:
                self._rows("supersede_jobs", ids=sorted(superseded), now=now)
            winners = {m.id: dues[m.id] for m in movers if m.id not in superseded}
            done = self._requeue(winners, aging_seconds, now, "")
        return Moves(done, ended + ended_jobs(movers, superseded))

    def _make_way(
        self, movers: Sequence[Mover], now: datetime | None
    ) -> tuple[set[UUID], list[EndedJob]]:
        """Return the movers that are superseded, and end the holders that give way to others.

        A holder whose row is locked does not: then the mover gives way after all.
        """
        judgment = judge(movers)
        if judgment.lapsed:
            self.lapse_windows(judgment.lapsed, now)
        if not judgment.give_way:
            return judgment.superseded, []
        rows = self._rows("supersede_jobs", ids=sorted(judgment.give_way), now=now)
        ended = [EndedJob._make(row) for row in rows]
        gone = {job.id for job in ended}
        stay = {mover for holder, mover in judgment.give_way.items() if holder not in gone}
        return judgment.superseded | stay, ended

    def _pass_on(self, suspicions: Mapping[UUID, tuple[int, bool]]) -> None:
        if suspicions:
            rows = [
                {"id": job_id.hex, "suspicions": count, "alone": alone}
                for job_id, (count, alone) in suspicions.items()
            ]
            self._rows("pass_suspicions", rows=json.dumps(rows), ids=sorted(suspicions))

    # --- statements ----------------------------------------

    def _end_attempts(
        self, endings: Sequence[Ending], now: datetime | None, moving: str
    ) -> list[tuple[UUID, int, bool]]:
        sql = statement(self.vendor, "end_attempts", moving=moving)
        rows = json.dumps([ending_row(ending) for ending in endings], ensure_ascii=False)
        found = self._run(sql, {"rows": rows, "ids": ids_of(endings), "now": now})
        return [(row[0], row[1], row[2]) for row in found]

    def _requeue(
        self,
        dues: Mapping[UUID, datetime | None],
        aging_seconds: float,
        now: datetime | None,
        unique: str,
    ) -> list[UUID]:
        sql = statement(self.vendor, "requeue_jobs", unique=unique)
        values = {"ids": list(dues), "dues": list(dues.values()), "aging": aging_seconds}
        return [row[0] for row in self._run(sql, {**values, "now": now})]

    # --- collisions ----------------------------------------

    def _by_parts[T, R](
        self, items: Sequence[T], write: Callable[[Sequence[T]], Moves[R]], moves: Moves[R]
    ) -> list[T]:
        """Write `items` and add what came of it to `moves`; return those that must wait.

        All together, or in halves where a twin got in between, down to single ones.
        """
        give_up = time.monotonic() + MOVE_SECONDS
        left: list[T] = []
        parts = [list(items)]
        while parts:
            part = parts.pop()
            if time.monotonic() > give_up:
                left += part
                continue
            try:
                written = write(part)
            except DatabaseError as error:
                if not _is_collision(error):
                    raise
                parts += _smaller(part, again=isinstance(error, IntegrityError), left=left)
                continue
            moves += written
            moves.superseded += written.superseded
        return left


def _smaller[T](part: list[T], *, again: bool, left: list[T]) -> Iterable[list[T]]:
    """Return what to try instead of `part`: its halves, a single one again, or nothing.

    again: a twin has been committed, which the next try sees. Otherwise a transaction that makes
    one is still open, and the single one goes to `left`.
    """
    middle = len(part) // 2
    if middle:
        return [part[middle:], part[:middle]]
    if again:
        return [part]
    left += part
    return []


def _is_collision(error: DatabaseError) -> bool:
    """Return whether `error` is about a unique key that another job holds, or is about to."""
    if isinstance(error, IntegrityError):
        diagnostics = getattr(error.__cause__, "diag", None)
        return getattr(diagnostics, "constraint_name", None) == "jobqueue_job_unique"
    return sqlstate(error) == LOCK_NOT_AVAILABLE


def _guard(ending: Ending) -> dict[str, object]:
    return {"id": ending.id.hex, "fence": ending.fence, "worker": ending.worker.hex}
