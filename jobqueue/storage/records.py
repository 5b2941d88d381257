"""What goes into storage and comes out of it: plain rows, made per batch. No ORM instances."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from jobqueue.limits import queue_key
from jobqueue.payload import ErrorText
from jobqueue.states import Blame

Fenced = tuple[UUID, int]
"""A job's id and the fence of one claim of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to insert. `run_at` (a time) or `delay` (seconds, on the database's clock), or now.

    `expires_at` or `expires_in`, likewise: no attempt starts after it. `unique_until` and
    `unique_window` (seconds) go with a `unique_key`, see `jobqueue.unique`. schedule, tick: what it
    is made for. blocked: why it has to wait for others; empty: it need not.
    """

    id: UUID
    backend: str
    task: str
    queue: str
    arguments: str
    timeout: float
    aging_seconds: float
    priority: int = 0
    run_at: datetime | None = None
    delay: float | None = None
    max_attempts: int | None = None
    on_crash: str = "retry"
    expires_at: datetime | None = None
    expires_in: float | None = None
    unique_key: str | None = None
    unique_until: str = ""
    unique_window: float | None = None
    copied_from: UUID | None = None
    created_by: str = ""
    trace_context: str | None = None
    schedule: str = ""
    tick: datetime | None = None
    blocked: str = ""
    limit_key: str | None = None
    tags: tuple[str, ...] = ()


class Inserted(NamedTuple):
    """What the database made of a new job."""

    id: UUID
    state: str
    run_at: datetime
    enqueued_at: datetime


class Twin(NamedTuple):
    """The job that holds a unique key.

    is_overdue: it could have started some seconds ago. has_lapsed: it has ended and its window is
    over; has_expired: it waits, but its time to start has passed. Both hold the key only until
    somebody says so.
    """

    key: str
    row: Inserted
    is_overdue: bool
    has_lapsed: bool
    has_expired: bool


class Starved(NamedTuple):
    """A unique job that could have started a while ago, but for locks of enqueues that met it."""

    id: UUID
    queue: str
    task: str
    rank: int


class Claim(NamedTuple):
    """A job that this process holds: the identity and fence of *this* claim, and what to run.

    Every later write about the job uses these values, never the process's current ones.
    claimed: when, in Unix seconds of the database's clock. Few ask, so nobody makes a datetime.
    """

    id: UUID
    fence: int
    worker: UUID
    task: str
    queue: str
    backend: str
    arguments: str
    failures: int
    max_attempts: int | None
    suspicions: int
    timeout: float
    alone: bool
    claimed: float
    rank: int
    limit_key: str | None = None

    @property
    def claimed_at(self) -> datetime:
        """When it was claimed, by the database's clock."""
        return datetime.fromtimestamp(self.claimed, UTC)


class Limited(NamedTuple):
    """A ready job that may start only if its key, its queue, or both have room."""

    id: UUID
    rank: int
    queue: str
    limit_key: str | None
    in_limited_queue: bool

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all limits that it is under."""
        own = () if self.limit_key is None else (self.limit_key,)
        return (*own, queue_key(self.queue)) if self.in_limited_queue else own


class Room(NamedTuple):
    """How many more jobs of a key may start now; None: any number.

    part_seconds: length of one part of its period, None without a rate. opens_in: seconds until
    the oldest start in the period no longer counts.
    """

    places: int | None
    part_seconds: float | None = None
    opens_in: float | None = None

    @property
    def is_full(self) -> bool:
        return self.places is not None and self.places <= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedLimit:
    """What the code says about one limit. source: the task or the TASKS alias that says it."""

    key: str
    running: int | None
    rate: int | None
    per: float | None
    source: str


class Place(NamedTuple):
    """Where a job stands in the order in which a queue's jobs, or a key's, are claimed."""

    rank: int
    id: UUID


FRONT = Place(-(2**63), UUID(int=0))
"""Before all jobs."""


class Window(NamedTuple):
    """The ready rows of one queue that a claim looks at.

    is_usable: some of them could be claimed by this worker. last: the place of the last one; None
    where the window is not full, so that nothing stands behind it. has_limited: some could if
    their limit had room.
    """

    is_usable: bool
    last: Place | None
    has_limited: bool = False


class Success(NamedTuple):
    """A finish: times are seconds before now, measured by the worker's monotonic clock."""

    id: UUID
    fence: int
    result: str
    started_ago: float
    ended_ago: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Any other way out of running: where the job goes and what its attempt was.

    outcome None: no attempt row (the code never started). delay None: due time and rank stay
    (release, reap); else seconds from now. worker: the guard's, which for a reaper is the dead one.
    """

    id: UUID
    fence: int
    worker: UUID
    state: str
    outcome: str | None = None
    charged: bool = False
    delay: float | None = None
    started_ago: float | None = None
    error: ErrorText | None = None
    reason: str = ""
    suspicion: int = 0
    alone: bool = False
    aging_seconds: float = 60.0


class EndedJob(NamedTuple):
    """A job that a sweep or a transition of another has ended, for those who are to be told."""

    id: UUID
    backend: str
    task: str


class Moves[T](list[T]):
    """The answer of a method that leads jobs to where they may hold their unique keys again.

    superseded: the jobs that were ended for it, as another of the same key lives.
    """

    def __init__(self, items: Iterable[T] = (), superseded: Iterable[EndedJob] = ()) -> None:
        super().__init__(items)
        self.superseded = list(superseded)


class Mover(NamedTuple):
    """A job that is about to hold its unique key again, and the job that holds it, if one does.

    holder_waits: it could give way. holder_lapsed: it has ended, and its window is over.
    holder_expired: it waits, but its time to start has passed.
    """

    id: UUID
    backend: str
    task: str
    key: str
    suspicions: int
    holder: UUID | None
    holder_waits: bool
    holder_lapsed: bool
    holder_expired: bool


class Held(NamedTuple):
    """A running job as its row says, for reconciling and recovery.

    cancel_reason: somebody asked for it to be cancelled, for this reason.
    """

    id: UUID
    fence: int
    worker: UUID
    task: str
    queue: str
    backend: str
    attempts: int
    failures: int
    max_attempts: int | None
    suspicions: int
    on_crash: str
    alone: bool
    limit_key: str | None = None
    cancel_reason: str | None = None


class NewProgress(NamedTuple):
    """How far a run has come. ago: seconds since it said so."""

    job_id: UUID
    fence: int
    done: float
    total: float | None
    message: str
    ago: float


class NewLine(NamedTuple):
    """What a run has logged. ago: seconds since then."""

    job_id: UUID
    fence: int
    number: int
    level: int
    logger: str
    message: str
    ago: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorker:
    """A process to register."""

    id: UUID
    kind: str
    name: str
    host: str
    pid: int
    backend: str
    version: str
    lease_seconds: float
    supervisor: UUID | None = None
    queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    slots: int = 0
    direct: bool = False


class AgeRule(NamedTuple):
    """How long ended jobs are kept. queue None: those of all queues without a rule of their own.

    seconds: since they ended; None keeps them.
    """

    state: str
    queue: str | None
    seconds: float | None


class Look(NamedTuple):
    """What one look of a walk found, and where the next begins; None at the end."""

    found: list[UUID]
    after: UUID | None


class Renewal(NamedTuple):
    """What a beat is told. draining: an operator wants this worker to end."""

    draining: bool


class WorkerRow(NamedTuple):
    """A worker's row, as recovery reads it; ages are seconds on the database's clock.

    missed_restart: its last renewal is older than the server, so the restart may be why it ran out.
    """

    id: UUID
    kind: str
    supervisor: UUID | None
    direct: bool
    lease_left: float
    renewed_ago: float
    missed_restart: bool = False


class Orphan(NamedTuple):
    """An identity that holds running jobs and is dead, or has no row at all.

    reason, blame, direct: of its row; without one, what has to be assumed.
    """

    worker: UUID
    reason: str = "no live row"
    blame: str = Blame.JOBS
    direct: bool = True


class Verdict(NamedTuple):
    """What the attempt table says of one claim: its outcome, if its end was ever committed."""

    outcome: str | None
    still_ours: bool


class Deed(NamedTuple):
    """What a client did, for its Action row. job_id: the first of several, `amount` how many."""

    actor: str
    surface: str
    verb: str
    job_id: UUID
    target: str
    amount: int


class RequestKey(NamedTuple):
    """Which request of whom: `key` is unique to a caller and a route, `fingerprint` is its body."""

    caller: str
    route: str
    key: str
    fingerprint: str


class StoredAnswer(NamedTuple):
    """An answer over HTTP, to be given again byte for byte."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class KeptRequest(NamedTuple):
    """What is kept under a key. answer: None only within the transaction that is making it."""

    fingerprint: str
    answer: StoredAnswer | None


def kept_request(row: Sequence[Any]) -> KeptRequest:
    """Return a row of fingerprint, status, headers (as text) and body."""
    fingerprint, status, headers, body = row
    if status is None:
        return KeptRequest(fingerprint, None)
    return KeptRequest(fingerprint, StoredAnswer(status, json.loads(headers), bytes(body)))
