"""Claiming under limits, letting the next start, and what the code says the limits are.

A claim takes the most urgent jobs, those with a limit in their turn. What it meets of full keys it
parks, so that nothing stands in the way of others: each job once, a thousand in a statement. A job
of a full queue is left where it is, for nothing else stands in that lane.

Order: of the jobs of one key that a worker serves, those start first that rank first, as far as
they are ready. With a limit of 1 they start one by one in that order. A retry or a snooze comes
back at its own time, and others of the key go ahead until then; a job that lost its worker keeps
its place. Workers that serve different queues do not wait for each other's.

For what a process leaves behind that dies, see `jobqueue.storage.limits`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from jobqueue.conf import Options
from jobqueue.limits import Limit, queue_key
from jobqueue.storage import Storage
from jobqueue.storage.limits import fitting
from jobqueue.storage.records import Claim, CodedLimit, Limited, Place, Room

if TYPE_CHECKING:
    from jobqueue.tasks import JobTask

ROUNDS = 8
"""Times that one claim parks and looks again: eight thousand jobs of full keys, then a pause."""
LOOK_LIMIT = 64
"""Jobs with a limit that are considered at once: each of their keys is counted."""
PARK_LIMIT = 1_000
"""Jobs parked by one statement: keeps its locks short."""
ADMIT_LIMIT = 1_000
"""Jobs of one key admitted by one statement, where an operator has lifted its limit."""
SWEEP_KEYS = 1_000
"""Keys that one sweep looks at; the next goes on behind them."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a worker may claim, and from where; strict: the order of queues goes before rank."""

    worker: UUID
    queues: Sequence[str]
    tasks: Sequence[str]
    behind: Sequence[Place] | None = None
    strict: bool = False

    def without(self, queues: Collection[str]) -> Wish:
        """Return the same without some queues."""
        kept = [n for n, queue in enumerate(self.queues) if queue not in queues]
        behind = None if self.behind is None else [self.behind[n] for n in kept]
        names = [self.queues[n] for n in kept]
        return Wish(self.worker, names, self.tasks, behind, self.strict)


@dataclass(slots=True)
class Taken:
    """What a claim came to.

    limited: claims under a limit, which must not wait for a slot behind others.
    has_limited: jobs with a limit stood among the most urgent. is_contended: some had room, but
    others were faster; look again in a moment. full_queues: nothing can be claimed from them now.
    opens: keys under a rate, and in how many seconds they have room again.
    """

    claims: list[Claim] = field(default_factory=list)
    limited: list[Claim] = field(default_factory=list)
    has_limited: bool = False
    is_contended: bool = False
    full_queues: set[str] = field(default_factory=set)
    opens: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.claims) + len(self.limited)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The queues that got jobs back, and when keys under a rate have room again (see Taken)."""

    queues: frozenset[str] = frozenset()
    opens: Mapping[str, float] = field(default_factory=dict)


# --- claim ----------------------------------------


def take(
    storage: Storage, wish: Wish, room: int, limited_room: int, now: datetime | None = None
) -> Taken:
    """Claim up to `room` jobs, up to `limited_room` of them with a limit."""
    taken = Taken()
    for _ in range(ROUNDS):
        left = room - len(taken)
        if left <= 0 or len(taken.limited) >= limited_room or not wish.queues:
            break
        claims, limited = storage.claim_beside_limited(
            wish.worker, wish.queues, wish.tasks, left, wish.behind, now, wish.strict
        )
        taken.claims += claims
        if not limited:
            return taken
        taken.has_limited = True
        most = min(limited_room - len(taken.limited), left - len(claims))
        has_moved = _take_limited(storage, wish, limited, most, taken, now)
        wish = wish.without(taken.full_queues)
        if not has_moved:
            break
    if len(taken) < room and wish.queues:
        taken.claims += claim_free(storage, wish, room - len(taken), now)
    return taken


def claim_free(storage: Storage, wish: Wish, room: int, now: datetime | None = None) -> list[Claim]:
    """Claim up to `room` jobs without a limit."""
    return storage.claim_many(
        wish.worker, wish.queues, wish.tasks, room, wish.behind, now, wish.strict
    )


def take_alone(storage: Storage, wish: Wish, now: datetime | None = None) -> Taken:
    """Claim one suspect that must run alone; its limit holds as for all others."""
    taken = Taken(storage.claim_alone(wish.worker, wish.queues, wish.tasks, now))
    if not taken.claims:
        limited = storage.find_limited(wish.queues, wish.tasks, LOOK_LIMIT, alone=True, now=now)
        if limited:
            _take_limited(storage, wish, limited, 1, taken, now, is_wide=False)
    return taken


def _take_limited(
    storage: Storage,
    wish: Wish,
    limited: Sequence[Limited],
    most: int,
    taken: Taken,
    now: datetime | None,
    *,
    is_wide: bool = True,
) -> bool:
    """Claim up to `most` of `limited`, and park what is full; return whether anything moved."""
    considered = limited[:LOOK_LIMIT]
    rooms = storage.read_rooms({key for job in considered for key in job.keys}, now)
    chosen = fitting(considered, rooms, most)
    claims = storage.claim_limited(wish.worker, chosen, wish.queues, now) if chosen else []
    taken.limited += claims
    has_moved = bool(claims)
    if len(claims) < len(chosen):
        taken.is_contended = True
        claimed = {claim.id for claim in claims}
        # One that is parked ahead of them has to come first, if it is that.
        passed = (job.limit_key for job in chosen if job.id not in claimed)
        has_moved |= bool(admit(storage, passed, wish.queues, now).queues)
    full_queues = {j.queue for j in considered if _is_full(rooms, j, queue_key(j.queue))}
    taken.full_queues |= full_queues
    taken.opens |= _opens(rooms)
    full = [job for job in considered if _is_full(rooms, job, job.limit_key)]
    if full and not chosen and is_wide:
        full, rooms = _all_full(storage, wish, now)
        taken.opens |= _opens(rooms)
    return bool(_park(storage, full, wish, now)) or has_moved or bool(full_queues)


def _is_full(rooms: Mapping[str, Room], job: Limited, key: str | None) -> bool:
    return key is not None and key in job.keys and rooms[key].is_full


def _all_full(
    storage: Storage, wish: Wish, now: datetime | None
) -> tuple[list[Limited], dict[str, Room]]:
    """Return the jobs of full keys in the claim windows."""
    found = storage.find_limited(wish.queues, wish.tasks, PARK_LIMIT, wish.behind, now=now)
    rooms = storage.read_rooms({job.limit_key for job in found if job.limit_key}, now)
    return [job for job in found if _is_full(rooms, job, job.limit_key)], rooms


def _park(storage: Storage, jobs: Sequence[Limited], wish: Wish, now: datetime | None) -> set[str]:
    """Park jobs of full keys; ask once more after the commit, for room may have come meanwhile."""
    if not jobs:
        return set()
    keys = storage.park_limited(sorted(job.id for job in jobs))
    admit(storage, keys, wish.queues, now)
    return keys


def _opens(rooms: Mapping[str, Room]) -> dict[str, float]:
    return {
        key: max(room.opens_in, 0.0)
        for key, room in rooms.items()
        if room.opens_in is not None and room.is_full
    }


# --- admit ----------------------------------------


def admit(
    storage: Storage,
    keys: Iterable[str | None],
    queues: Sequence[str] | None = None,
    now: datetime | None = None,
) -> Admitted:
    """Make parked jobs of `keys` ready, as many as have room; to be called after a commit.

    By whoever ended a job of the key, whatever way: the jobs' own keys (None: it had none).
    queues: only their jobs count and are admitted.
    """
    wanted = {key for key in keys if key is not None}
    if not wanted:
        return Admitted()
    rooms = storage.read_rooms(wanted, now)
    places = {
        key: ADMIT_LIMIT if room.places is None else min(room.places, ADMIT_LIMIT)
        for key, room in rooms.items()
        if not room.is_full
    }
    admitted = storage.admit_limited(places, queues) if places else []
    counts = Counter(key for key, _ in admitted)
    opens = _opens(rooms)
    for key, room in rooms.items():
        if room.opens_in is not None and counts[key] == places.get(key):
            opens[key] = max(room.opens_in, 0.0)  # filled: more may be parked
    return Admitted(frozenset(queue for _, queue in admitted), opens)


def sweep_limits(
    storage: Storage, queues: Sequence[str] | None, after: str = ""
) -> tuple[Admitted, str]:
    """Admit what an ender has forgotten, of up to `SWEEP_KEYS` keys behind `after`.

    queues: those that the workers of this process serve, None: all. What stands ready elsewhere
    says nothing then: maybe nobody serves it. Return also where the next sweep goes on.
    """
    keys = storage.parked_keys(after, SWEEP_KEYS)
    admitted = admit(storage, keys, queues)
    return admitted, keys[-1] if len(keys) == SWEEP_KEYS else ""


# --- what the code says ----------------------------------------


def coded_limits(
    tasks: Iterable[JobTask[..., Any]], alias: str, options: Options
) -> list[CodedLimit]:
    """Return the limits of tasks and queues; of those that share a name each number's smallest."""
    found: dict[str, CodedLimit] = {}
    for task in sorted(tasks, key=lambda one: one.module_path):
        if task.limit is not None:
            _add(found, task.limit.name_for(task.module_path), task.limit, task.module_path)
    for queue, limit in options.queue_limits.items():
        _add(found, queue_key(queue), limit, alias)
    return sorted(found.values(), key=lambda one: one.key)


def _add(found: dict[str, CodedLimit], key: str, limit: Limit, source: str) -> None:
    running, rate, per = limit.numbers
    known = found.get(key)
    if known is None:
        found[key] = CodedLimit(key=key, running=running, rate=rate, per=per, source=source)
        return
    if known.rate is not None and (
        rate is None or known.rate * (per or 1) < rate * (known.per or 1)
    ):
        rate, per = known.rate, known.per
    numbers = [n for n in (known.running, running) if n is not None]
    found[key] = CodedLimit(
        key=key, running=min(numbers, default=None), rate=rate, per=per, source=known.source
    )


def seed(
    storage: Storage, tasks: Iterable[JobTask[..., Any]], alias: str, options: Options
) -> None:
    """Write down what the code of this process says, which acts on waiting jobs too."""
    known = list(tasks)
    sources = [alias, *(task.module_path for task in known)]
    storage.seed_limits(coded_limits(known, alias, options), sources)
