"""Back to waiting, on SQLite: under the write lock, so who holds a unique key is known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from jobqueue.states import WAITING
from jobqueue.storage.busy import writes
from jobqueue.storage.moving import as_superseded, ended_jobs, judge, suspicions_to_pass
from jobqueue.storage.records import EndedJob, Ending, Mover, Moves
from jobqueue.storage.rows import ending_row
from jobqueue.storage.sqlite_enqueue import SQLiteEnqueue
from jobqueue.storage.sqlite_values import after, microseconds, optional_id, time_text


class SQLiteMoving(SQLiteEnqueue):
    """The protocol's methods that lead jobs to where they hold their unique keys again."""

    @writes
    def end_many(
        self, endings: Sequence[Ending], now: datetime | None = None
    ) -> Moves[tuple[UUID, int]]:
        clock = self._clock(now)
        movers = self._movers(endings, clock)
        superseded, ended = self._make_way(movers, clock)
        for job_id, (count, alone) in suspicions_to_pass(endings, movers, superseded).items():
            self._rows("pass_suspicion", id=job_id, suspicions=count, alone=alone)
        # Those that give way first: the index knows no later.
        chosen = [as_superseded(e) if e.id in superseded else e for e in endings]
        chosen.sort(key=lambda ending: ending.state in WAITING)
        unmatched = [(e.id, e.fence) for e in chosen if not self._end(e, clock)]
        return Moves(unmatched, ended + ended_jobs(movers, superseded))

    @writes
    def requeue_many(
        self,
        ids: Sequence[UUID],
        aging_seconds: float,
        dues: Sequence[datetime] | None = None,
        now: datetime | None = None,
    ) -> Moves[UUID]:
        clock = self._clock(now)
        movers = [_mover(row) for row in self._rows("find_requeued", ids=list(ids), now=clock)]
        superseded, ended = self._make_way(movers, clock)
        if superseded:
            self._rows("supersede_jobs", ids=sorted(superseded), now=clock)
        moments = zip(ids, dues or [clock] * len(ids), strict=True)
        jobs = [due_row(each, due, clock) for each, due in moments if each not in superseded]
        done = self._rows("requeue_jobs", jobs=jobs, aging=aging_seconds)
        return Moves([UUID(hex=r[0]) for r in done], ended + ended_jobs(movers, superseded))

    def _movers(self, endings: Sequence[Ending], clock: datetime) -> list[Mover]:
        """Return the jobs that will hold their keys again, if their guards match."""
        guards = {(e.id.hex, e.fence, e.worker.hex) for e in endings if e.state in WAITING}
        if not guards:
            return []
        rows = self._rows("find_movers", ids=[guard[0] for guard in guards], now=clock)
        return [_mover(row) for row in rows if (row[0], *row[9:]) in guards]

    def _make_way(
        self, movers: Sequence[Mover], clock: datetime
    ) -> tuple[set[UUID], list[EndedJob]]:
        """Return the movers that are superseded, and end the holders that give way to others."""
        judgment = judge(movers)
        if judgment.lapsed:
            self._rows("lapse_windows", ids=judgment.lapsed, now=clock)
        if not judgment.give_way:
            return judgment.superseded, []
        rows = self._rows("supersede_jobs", ids=sorted(judgment.give_way), now=clock)
        return judgment.superseded, [EndedJob(UUID(hex=row[0]), row[1], row[2]) for row in rows]

    def _end(self, ending: Ending, clock: datetime) -> bool:
        row = ending_row(ending)
        if ending.outcome is not None:
            ago = ending.started_ago
            started = None if ago is None else after(clock, -ago)
            self._rows("insert_attempt", **row, started_at=started, finished_at=clock)
        due = None if ending.delay is None else after(clock, ending.delay)
        ranked = None if due is None else microseconds(due)
        return bool(self._changed("end_attempt", **row, now=clock, due=due, due_rank=ranked))


def due_row(job_id: UUID, due: datetime, clock: datetime) -> tuple[str, str, int, bool]:
    """Return for a job: id, due time, due time in microseconds, whether it is due now."""
    moment = max(due, clock)
    return job_id.hex, time_text(moment), microseconds(moment), moment == clock


def _mover(row: Sequence[Any]) -> Mover:
    mover = Mover._make(row[:9])
    return mover._replace(
        id=UUID(hex=row[0]),
        holder=optional_id(row[5]),
        holder_waits=bool(row[6]),
        holder_lapsed=bool(row[7]),
        holder_expired=bool(row[8]),
    )
