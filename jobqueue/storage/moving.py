"""Which of several jobs with one unique key goes on living. Pure; both storages ask it.

A job that ran, or had ended, comes back to wait, and another of its key was made meanwhile: the
older of the two gives way and is ended as superseded. It was asked for before the newer one, so
whatever it should have seen, the newer sees. A holder gives way only while it waits; one that
runs, or has ended within its window, stays, and the job that comes back is superseded. One whose
time to start has passed will never run: it gives way to an older one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from jobqueue.states import State
from jobqueue.storage.records import EndedJob, Ending, Mover

SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Judgment:
    """What is to become of some movers and of those who hold their keys.

    superseded: movers that give way. give_way: holders that do, each for the mover it names.
    lapsed: holders that have ended and whose windows are over.
    """

    superseded: set[UUID] = field(default_factory=set)
    give_way: dict[UUID, UUID] = field(default_factory=dict)
    lapsed: list[UUID] = field(default_factory=list)


def judge(movers: Iterable[Mover]) -> Judgment:
    """Return who gives way, so that one job a key is left."""
    judgment = Judgment()
    newest: dict[tuple[str, str], Mover] = {}
    for mover in sorted(movers):  # by id, that is by age
        older = newest.get((mover.task, mover.key))
        if older is not None:
            judgment.superseded.add(older.id)
        newest[mover.task, mover.key] = mover
    for mover in newest.values():
        if mover.holder is None:
            continue
        if mover.holder_lapsed:
            judgment.lapsed.append(mover.holder)
        elif mover.holder_expired or (mover.holder_waits and mover.holder < mover.id):
            judgment.give_way[mover.holder] = mover.id
        else:
            judgment.superseded.add(mover.id)
    return judgment


def as_superseded(ending: Ending) -> Ending:
    """Return the end of an attempt whose job is superseded instead of waiting again."""
    return replace(ending, state=State.CANCELLED, reason=SUPERSEDED, delay=None)


def ended_jobs(movers: Iterable[Mover], superseded: set[UUID]) -> list[EndedJob]:
    """Return those of `movers` that were superseded."""
    return [EndedJob(m.id, m.backend, m.task) for m in movers if m.id in superseded]


def suspicions_to_pass(
    endings: Sequence[Ending], movers: Iterable[Mover], superseded: set[UUID]
) -> dict[UUID, tuple[int, bool]]:
    """Return how suspect each holder is that takes over the work of a superseded suspect.

    Without this, work that kills its workers would never end as poison while somebody goes on
    asking for it: each death would leave a fresh twin behind.
    """
    by_id = {ending.id: ending for ending in endings}
    passed: dict[UUID, tuple[int, bool]] = {}
    for mover in movers:
        ending = by_id[mover.id]
        count = mover.suspicions + ending.suspicion
        if mover.id in superseded and mover.holder is not None and mover.holder_waits and count:
            passed[mover.holder] = (count, ending.alone)
    return passed
