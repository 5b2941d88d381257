"""Writing down how executions ended, in batches.

What a process leaves behind that dies …
- before `flush`: running rows, reaped as lost. They had no effects (those with effects finish in
  their own transaction), or were not atomic: at-least-once.
- between `flush` and clearing its ledger: ended rows; the supervisor sees "may have been running"
  for jobs that are running under it no more, and touches none of them.
A connection lost in `flush` leaves it unknown whether the batch was committed: it is sent again,
and what then does not match is looked up in the attempt table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from django.db import DatabaseError

from jobqueue.conf import CHUNK_CHARACTERS, Options, job_options
from jobqueue.engine.announcements import announce_ended, announce_superseded
from jobqueue.engine.environment import Environment
from jobqueue.engine.halves import write_in_halves
from jobqueue.engine.hygiene import clean_connections
from jobqueue.engine.outcomes import Ended, decide_unrunnable
from jobqueue.events import emit
from jobqueue.states import Outcome, State
from jobqueue.storage import Storage
from jobqueue.storage.errors import may_pass
from jobqueue.storage.moving import SUPERSEDED
from jobqueue.storage.records import EndedJob, Fenced

logger = logging.getLogger("jobqueue")


def flush(storage: Storage, ended: Sequence[Ended], environment: Environment) -> list[Ended]:
    """Write the ends of executions in batches; then tell signals and events.

    Return those that could not be written now, to be given again a moment later: a row that is
    locked is not waited for, as all others would wait with it. Raise the error if the database is
    away (`is_away`): nothing is forgotten, call again with the same `ended`.

    A success that the database refuses is split from its batch and recorded as a failure; an end
    that it refuses in any form is logged and returned, too: its job stays held, so that nobody
    runs it again before the reaper takes it at its deadline. What is no longer ours is reported
    as a lost lease.
    """
    batch = _Batch(storage, ended, environment.options)
    batch.write()
    announce_ended(batch.written())
    announce_superseded(batch.superseded)
    if environment.test_connection is None:
        clean_connections()  # subscribers to events ran in this thread
    return [e for e in ended if _fenced(e) in batch.left] if batch.left else []


class _Batch:
    """The ends of one flush.

    ends: each as what it is written. unmatched: rows that a statement passed over. left: ends to
    be written later. lost: ends of jobs that are somebody else's. superseded: waiting jobs that
    were ended, as one of these waits again with their unique key.
    """

    def __init__(self, storage: Storage, ended: Sequence[Ended], options: Options) -> None:
        self.ends = {_fenced(e): e for e in ended}
        self.left: set[Fenced] = set()
        self.lost: set[Fenced] = set()
        self.superseded: list[EndedJob] = []
        self._storage = storage
        self._options = options
        self._unmatched: set[Fenced] = set()

    def write(self) -> None:
        """Write what is to be written, and find out about what was passed over."""
        for part in _bounded(e for e in self.ends.values() if e.result is not None):
            self._in_halves(part, self._finish, self._end_as_failure)
        for part in _bounded(e for e in self.ends.values() if e.failure is not None):
            self._in_halves(part, self._end, self._end_in_ascii)
        if self._unmatched:
            self._look_up()

    def written(self) -> list[Ended]:
        """Return the ends that stand in the database now; tell of those that are lost."""
        found = []
        for fenced, one in self.ends.items():
            if self.left and fenced in self.left:
                continue
            if (self.lost and fenced in self.lost) or not (one.is_success or one.failure):
                emit("job.lease_lost", level=logging.WARNING, job=fenced[0], fence=fenced[1])
            else:
                found.append(one)
        return found

    def _finish(self, part: Sequence[Ended]) -> list[Fenced]:
        return self._storage.finish_many(part[0].claim.worker, [e.as_success() for e in part])

    def _end(self, part: Sequence[Ended]) -> list[Fenced]:
        moves = self._storage.end_many([e.as_ending() for e in part])
        if moves.superseded:
            self._note_superseded(part, moves.superseded)
        return moves

    def _note_superseded(self, part: Sequence[Ended], superseded: Sequence[EndedJob]) -> None:
        """Note which of these jobs were cancelled instead, and which others gave way to them."""
        jobs = {job.id: job for job in superseded}
        for one in part:
            if jobs.pop(one.claim.id, None) and one.failure is not None:
                gave_way = replace(one.failure, state=State.CANCELLED, reason=SUPERSEDED)
                self.ends[_fenced(one)] = replace(one, failure=gave_way)
        self.superseded += jobs.values()

    def _in_halves(
        self,
        part: Sequence[Ended],
        write: Callable[[Sequence[Ended]], list[Fenced]],
        refused: Callable[[Ended, DatabaseError], None],
    ) -> None:
        """Write `part`; leave for later what is refused alone by a time-out or a conflict only."""

        def refused_alone(one: Ended, error: DatabaseError) -> None:
            if may_pass(error):  # it says nothing against the row
                self.left.add(_fenced(one))
            else:
                refused(one, error)

        write_in_halves(part, lambda some: self._unmatched.update(write(some)), refused_alone)

    def _end_as_failure(self, one: Ended, error: DatabaseError) -> None:
        options = job_options(one.claim.backend, self._options)
        failure = decide_unrunnable(one.claim, error, options)
        self.ends[_fenced(one)] = replace(one, result=None, failure=failure)

    def _end_in_ascii(self, one: Ended, error: DatabaseError) -> None:
        """Try once more with text that a database of any encoding takes."""
        assert one.failure is not None
        text = one.failure.error
        plain = replace(one, failure=replace(one.failure, error=text and text.in_ascii()))
        self.ends[_fenced(one)] = plain
        self._in_halves([plain], self._end, self._leave)

    def _leave(self, one: Ended, error: DatabaseError) -> None:
        logger.error("The end of job %s cannot be stored: %s", one.claim.id, error)
        self.left.add(_fenced(one))

    def _look_up(self) -> None:
        """Find out about rows that were passed over: locked, lost, or written before.

        Before: by a try whose answer was lost. A time-out or a forced cancel of this very claim may
        also be a reaper's or an operator's, who has told of it: nobody is to hear of it twice.
        """
        found = self._storage.verdicts([self.ends[each].claim for each in self._unmatched])
        for fenced in self._unmatched:
            one, verdict = self.ends[fenced], found[fenced]
            expected = Outcome.SUCCEEDED if one.failure is None else one.failure.outcome
            if verdict.outcome == expected and expected not in _ALSO_WRITTEN_BY_OTHERS:
                continue
            (self.left if verdict.still_ours else self.lost).add(fenced)


_ALSO_WRITTEN_BY_OTHERS = frozenset({Outcome.TIMED_OUT, Outcome.CANCELLED})


def _bounded(ended: Iterable[Ended]) -> Iterator[list[Ended]]:
    """Cut ends into the parts that go in one statement: bounded in text."""
    part: list[Ended] = []
    room = CHUNK_CHARACTERS
    for one in ended:
        size = one.text_size
        if part and size > room:
            yield part
            part, room = [], CHUNK_CHARACTERS
        part.append(one)
        room -= size
    if part:
        yield part


def _fenced(ended: Ended) -> Fenced:
    return ended.claim.id, ended.claim.fence
