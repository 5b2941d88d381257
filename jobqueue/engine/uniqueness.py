"""Enqueueing jobs with a unique key: one statement inserts, or finds who holds the key.

Insert, on conflict nothing. Where a key was held: look at the holder without a lock, and then

- it waits: lock its row until the caller commits, so that it cannot start before what the caller
  wrote can be seen (without: the job ran, had read old data, and nothing was left to run again);
  FOR SHARE, as others may meet it too, but one that could have started some seconds ago by one
  enqueue at a time, so that a waiting claim comes to its turn;
- it runs (``until="done"``), or has ended within its window: it is kept as it is, unlocked. A lock
  would keep its worker from finishing it;
- it has ended and its window is over: let it give up the key, and insert again;
- it waits and is to be kept, but its time to start has passed: no claim takes it any more, and the
  sweep only comes each poll. It is cancelled as the sweep would, and insert again;
- it has started or ended meanwhile: insert again.

All of it happens in a savepoint of the caller's transaction with a bound on every wait, so that
neither a conflict nor KeyBusy breaks that transaction. What a process leaves behind that dies
here is what its transaction leaves: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from jobqueue.conf import KEY_WAIT_SECONDS
from jobqueue.engine.sweeps import announce_expired
from jobqueue.exceptions import KeyBusy
from jobqueue.states import WAITING
from jobqueue.storage import Storage
from jobqueue.storage.records import EndedJob, Inserted, NewJob, Twin
from jobqueue.unique import KEEP, REPLACE

MOST_TRIES = 20
"""How often a holder may slip away between being met and being locked. Each time it has started or
ended: more than a few need somebody who makes and runs jobs of this key all the time."""

Chunks = Callable[[list[NewJob]], Iterable[list[NewJob]]]
Placed = tuple[NewJob, Inserted]
"""A job that was asked for, and the row that stands for it: its own, or that of a twin."""


def insert_unique(
    storage: Storage, jobs: Sequence[NewJob], on_conflict: str, chunks: Chunks
) -> list[Placed]:
    """Insert jobs of one task, one a key; return them in order, each with its own or a twin's row.

    All or none. A job without a key is inserted like any other. Of several with one key the first
    is made; with "replace" it has the arguments of the last. chunks: cuts jobs into statements.
    """
    wanted = _one_a_key(jobs, on_conflict)
    plain = [job for job in jobs if job.unique_key is None]
    expired: list[EndedJob] = []

    def run() -> dict[str | UUID, Inserted]:
        expired.clear()  # of a try that was rolled back
        rows: dict[str | UUID, Inserted] = {}
        for chunk in chunks(plain) if plain else ():
            rows.update((row.id, row) for row in storage.insert_jobs(chunk))
        return rows | _place(storage, list(wanted.values()), on_conflict, chunks, expired)

    rows = storage.bounded(run, KEY_WAIT_SECONDS)
    if expired:
        _tell_of(storage, expired)
    return [
        (job, rows[job.id]) if job.unique_key is None else (_own(job, wanted), rows[job.unique_key])
        for job in jobs
    ]


def _one_a_key(jobs: Sequence[NewJob], on_conflict: str) -> dict[str, NewJob]:
    """Return the job to insert for each key, in the order of the keys (the order of locks)."""
    found: dict[str, NewJob] = {}
    for job in jobs:
        key = job.unique_key
        if key is None:
            continue
        first = found.setdefault(key, job)
        if on_conflict == REPLACE:
            found[key] = replace(first, arguments=job.arguments, limit_key=job.limit_key)
    return dict(sorted(found.items()))


def _own(job: NewJob, wanted: dict[str, NewJob]) -> NewJob:
    """Return `job`, with the arguments of a later one that has replaced its own."""
    chosen = wanted[job.unique_key or ""]
    return chosen if chosen.id == job.id else job


def _tell_of(storage: Storage, expired: Sequence[EndedJob]) -> None:
    """Tell of twins that were cancelled, once the caller's transaction commits."""
    connection = storage.connection
    if connection.in_atomic_block:
        connection.on_commit(partial(announce_expired, expired), robust=True)
    elif connection.get_autocommit():
        announce_expired(expired)


def _place(
    storage: Storage,
    jobs: list[NewJob],
    on_conflict: str,
    chunks: Chunks,
    expired: list[EndedJob],
) -> dict[str | UUID, Inserted]:
    """Return the row that stands for each key, once every one is inserted or has a twin.

    expired: gets the twins that were cancelled for it.
    """
    placed: dict[str | UUID, Inserted] = {}
    for _ in range(MOST_TRIES):
        if not jobs:
            return placed
        inserted = {row.id: row for chunk in chunks(jobs) for row in storage.insert_unique(chunk)}
        placed.update((str(j.unique_key), inserted[j.id]) for j in jobs if j.id in inserted)
        left = {str(job.unique_key): job for job in jobs if job.id not in inserted}
        if left:
            twins = storage.find_twins(jobs[0].task, left)
            if on_conflict == KEEP and (late := [t.row.id for t in twins if t.has_expired]):
                expired += storage.expire_twins(sorted(late))
                twins = [twin for twin in twins if not twin.has_expired]
            placed.update(_keep(storage, twins, left, on_conflict))
        jobs = [job for key, job in left.items() if key not in placed]
    raise KeyBusy(
        "The jobs of this unique key start and end faster than this one can find out whether one "
        "of them waits. Nothing was enqueued; try again."
    )


def _keep(
    storage: Storage, twins: Sequence[Twin], jobs: dict[str, NewJob], on_conflict: str
) -> dict[str, Inserted]:
    """Return the rows of those twins that still hold their keys, by key; see the module."""
    lapsed = [twin.row.id for twin in twins if twin.has_lapsed]
    if lapsed:
        storage.lapse_windows(sorted(lapsed))
    waiting = {twin.row.id: twin for twin in twins if twin.row.state in WAITING}
    kept = {t.key: t.row for t in twins if not t.has_lapsed and t.row.id not in waiting}
    if waiting:
        changed = _locked(storage, waiting, jobs, on_conflict)
        kept.update((waiting[row.id].key, row) for row in changed)
    return kept


def _locked(
    storage: Storage, waiting: dict[UUID, Twin], jobs: dict[str, NewJob], on_conflict: str
) -> list[Inserted]:
    """Lock waiting twins, and change them if that is asked for; return those that still wait."""
    ids = sorted(waiting)
    if on_conflict == KEEP:
        alone = any(twin.is_overdue for twin in waiting.values())
        still_waiting = storage.lock_twins(ids, alone=alone)
        return [waiting[each].row for each in ids if each in still_waiting]
    changes = {each: jobs[waiting[each].key] for each in ids}
    change = storage.replace_twins if on_conflict == REPLACE else storage.reschedule_twins
    return change(changes)
