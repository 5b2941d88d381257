"""The storage protocol: one documented method per statement, batch first.

A `Storage` is bound to one database connection (a Django connection wrapper) and keeps no state
beyond it. Whether a method runs in a transaction is said in its docstring; those about the job's
own transaction run on Django's connection for the alias, the others on a connection of ours.

Guarantee of every write about a running job: it matches ``id AND state = running AND fence AND
worker`` in one statement, or changes nothing. `finish_one` and `hold` raise when it does not.

`now` moves the clock in tests: a datetime, or None for the database's own
``statement_timestamp()``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.module_loading import import_string

from jobqueue.states import Blame
from jobqueue.storage.health import HealthProtocol
from jobqueue.storage.idempotency import IdempotencyStorage
from jobqueue.storage.limits import LimitStatements
from jobqueue.storage.records import (
    Claim,
    EndedJob,
    Ending,
    Held,
    Inserted,
    Moves,
    NewJob,
    NewWorker,
    Orphan,
    Place,
    Renewal,
    Success,
    Verdict,
    Window,
    WorkerRow,
)
from jobqueue.storage.reports import ReportStorage
from jobqueue.storage.requests import RequestStorage
from jobqueue.storage.retention import RetentionStorage
from jobqueue.storage.rollups import RollupsProtocol
from jobqueue.storage.schedules import ScheduleStorage
from jobqueue.storage.unique import UniqueJobs
from jobqueue.storage.waiting import WaitingProtocol

if TYPE_CHECKING:
    from jobqueue.conf import Options


class Storage(
    LimitStatements,
    HealthProtocol,
    IdempotencyStorage,
    ReportStorage,
    RequestStorage,
    RetentionStorage,
    UniqueJobs,
    RollupsProtocol,
    ScheduleStorage,
    WaitingProtocol,
):
    """What the engine asks of a database. See the module docstring for the contract."""

    vendor: ClassVar[str]
    one_host: ClassVar[bool] = False
    """Workers live on one host and prove it by a file lock, not by a lease."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection = connection

    # --- enqueue: in the caller's transaction ----------------------------------------

    def insert_jobs(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Inserted]:
        """Insert `jobs` (and their tags) in one statement each; return them in the given order."""
        raise NotImplementedError

    # --- claim and give back: own connection, one transaction each ------------------------------

    def claim_many(
        self,
        worker: UUID,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        behind: Sequence[Place] | None = None,
        now: datetime | None = None,
        strict: bool = False,
    ) -> list[Claim]:
        """Claim up to `limit` ready jobs of `tasks` from `queues`, the most urgent first.

        Nothing is claimed from a paused queue, for a worker whose row is dead, of a job that
        must run alone, or under a limit (`jobqueue.storage.limits`). behind: for each queue the
        place behind which to look. strict: the order of `queues` goes before rank.
        """
        raise NotImplementedError

    def claim_alone(
        self, worker: UUID, queues: Sequence[str], tasks: Sequence[str], now: datetime | None = None
    ) -> list[Claim]:
        """Claim one ready job that must run alone and has no limit; empty if there is none."""
        raise NotImplementedError

    def alone_waiting(self, queues: Sequence[str], tasks: Sequence[str]) -> int:
        """Return how many ready jobs of `tasks` must run alone (counted up to 100)."""
        raise NotImplementedError

    def read_windows(
        self, queues: Sequence[str], behind: Sequence[Place], tasks: Sequence[str]
    ) -> list[Window]:
        """Return, per queue, what a claim with these arguments would look at.

        Tells a worker whose claim came back empty whether others were faster or it should skip.
        """
        raise NotImplementedError

    def live_queues(self) -> list[str]:
        """Return the names of the queues that hold a ready job."""
        raise NotImplementedError

    # --- ends of an attempt ----------------------------------------

    def finish_one(self, claim: Claim, result: str, started_ago: float) -> None:
        """Finish `claim` inside the job's own transaction, with its attempt row.

        Raise LeaseLost if the guard does not match (on PostgreSQL the statement itself fails on
        the server, so that nothing queued behind it can commit).
        """
        raise NotImplementedError

    def finish_and_commit(self, claim: Claim, result: str, started_ago: float) -> bool:
        """Finish `claim` as the last thing in its transaction; return whether COMMIT went with it.

        For callers that leave the transaction at once. Where both go in one round trip Django's
        own COMMIT finds nothing left to do; where they do not, it is the one. Raise as
        `finish_one` does, or what the COMMIT raises: then nothing was committed.
        """
        self.finish_one(claim, result, started_ago)
        return False

    def finish_many(self, worker: UUID, successes: Sequence[Success]) -> list[tuple[UUID, int]]:
        """Finish jobs without effects in one transaction; return (id, fence) of those it did not.

        Never waits for a row's lock: what is locked is left, and returned like what is not ours.
        """
        raise NotImplementedError

    def end_many(
        self, endings: Sequence[Ending], now: datetime | None = None
    ) -> Moves[tuple[UUID, int]]:
        """Lead running jobs to other states; return (id, fence) of those that were not.

        Never waits for a row's lock: what is locked is left, and returned like what does not match.
        A job that would wait again while another of its unique key lives is cancelled instead, or
        the other is, whichever is older: see `superseded` of the answer. Where it is not known yet
        whether another will live, the job is left, too.
        """
        raise NotImplementedError

    def hold(self, claim: Claim, idle_timeout_seconds: float | None) -> None:
        """Lock the job's row with the whole guard until the transaction ends; else LeaseLost.

        idle_timeout_seconds: for the rest of the transaction; None leaves the session's own.
        """
        raise NotImplementedError

    def verdict(self, claim: Claim) -> Verdict:
        """Return what became of `claim`: wait for its row's lock, then read our attempt row."""
        raise NotImplementedError

    def verdicts(self, claims: Sequence[Claim | Held]) -> dict[tuple[UUID, int], Verdict]:
        """Return what became of each claim, by (id, fence), as a plain read: waits for nobody.

        So one whose end is just being committed is still said to be ours.
        """
        raise NotImplementedError

    # --- steps: own connection, own transaction ----------------------------------------

    def find_step(self, job_id: UUID, name: str) -> str | None:
        """Return the JSON text recorded for a step, None if there is none."""
        raise NotImplementedError

    def record_step(self, claim: Claim, name: str, result: str) -> None:
        """Record a step under the guard (key share: the job's own transaction may hold the row).

        Raise LeaseLost if the guard does not match.
        """
        raise NotImplementedError

    # --- life of a worker ----------------------------------------

    def register_worker(self, worker: NewWorker) -> None:
        """Insert the worker's row with a fresh lease."""
        raise NotImplementedError

    def renew_worker(self, worker: UUID, lease_seconds: float, direct: bool) -> Renewal | None:
        """Renew the lease of a worker that is not dead; None means: this process is dead."""
        raise NotImplementedError

    def mark_dead(self, worker: UUID, reason: str, blame: str = Blame.JOBS) -> bool:
        """Declare a worker dead whatever its lease says (its process has ended).

        True if it was alive until now. The row keeps the blame for whoever takes its jobs back.
        """
        raise NotImplementedError

    def mark_expired(
        self, worker: UUID, blame: str = Blame.JOBS, now: datetime | None = None
    ) -> bool:
        """Declare a worker dead if its lease has run out, by compare-and-set."""
        raise NotImplementedError

    def workers(self, now: datetime | None = None) -> list[WorkerRow]:
        """Return the rows that are not dead."""
        raise NotImplementedError

    def known_tasks(self) -> set[str]:
        """Return the names of the tasks that some live worker has registered."""
        raise NotImplementedError

    def update_worker_tasks(self, worker: UUID, tasks: Sequence[str]) -> None:
        """Name the tasks that a worker knows by now."""
        raise NotImplementedError

    def running_of(self, workers: Sequence[UUID]) -> list[Held]:
        """Return the jobs running under these identities."""
        raise NotImplementedError

    def orphan_workers(self, patience_seconds: float = 0.0) -> list[Orphan]:
        """Return identities that hold running jobs and are dead or have no row at all.

        The dead only after `patience_seconds`: whoever declared them dead is at it.
        """
        raise NotImplementedError

    def overdue(self, slack_seconds: float, now: datetime | None = None) -> list[Held]:
        """Return running jobs that are past their deadline by more than `slack_seconds`."""
        raise NotImplementedError

    # --- sessions: only where a session is proven direct ----------------------------------------

    def is_direct(self) -> bool:
        """Return whether this connection reaches the server itself, not a pooler."""
        raise NotImplementedError

    def end_sessions(self, workers: Sequence[UUID]) -> int:
        """Tell the server to end every session of these identities; return how many are left."""
        raise NotImplementedError

    def end_session(self, pid: int, worker: UUID) -> bool:
        """End the worker's session with this backend pid; return whether it is gone."""
        raise NotImplementedError

    def hold_life_lock(self, worker: UUID) -> None:
        """Take the session lock that proves this worker alive, for as long as the session lives."""
        raise NotImplementedError

    def life_locks(self) -> set[int]:
        """Return the keys of the life locks that are held (see `jobqueue.ids.lock_key`)."""
        raise NotImplementedError

    def server_started_at(self) -> datetime | None:
        """Return when the database server started, None where there is no server."""
        raise NotImplementedError

    # --- sweeps ----------------------------------------

    def promote(self, limit: int, now: datetime | None = None) -> list[str]:
        """Make due jobs ready; return the queue of each."""
        raise NotImplementedError

    def expire(self, limit: int, now: datetime | None = None) -> list[EndedJob]:
        """Cancel waiting jobs whose time to start has passed; return them (not locked rows)."""
        raise NotImplementedError

    def park_unknown(self, known: Sequence[str], limit: int) -> list[str]:
        """Block ready jobs of tasks that are not in `known`; return the task of each."""
        raise NotImplementedError

    def parked_tasks(self, limit: int) -> list[str]:
        """Return up to `limit` names of tasks of which a job is blocked as unknown."""
        raise NotImplementedError

    def admit_known(self, known: Sequence[str], limit: int) -> list[str]:
        """Make jobs ready that were blocked for an unknown task now in `known`; return queues."""
        raise NotImplementedError

    # --- operators ----------------------------------------

    def clock(self) -> datetime:
        """Return the time on the database's clock."""
        raise NotImplementedError

    def begin_operation(self, lock_wait_seconds: float) -> None:
        """Prepare a transaction that has just begun: READ COMMITTED, no long wait for a lock."""

    def requeue_many(
        self,
        ids: Sequence[UUID],
        aging_seconds: float,
        dues: Sequence[datetime] | None = None,
        now: datetime | None = None,
    ) -> Moves[UUID]:
        """Give dead or cancelled jobs a new budget; return those it did.

        They are ready at once, or scheduled for their times in `dues`. Of several of one unique
        key one lives on, as with `end_many`.
        """
        raise NotImplementedError

    def cancel_waiting(self, ids: Sequence[UUID], reason: str) -> list[UUID]:
        """Cancel waiting jobs; return those it did (locked and moved-on rows are left)."""
        raise NotImplementedError

    def discard_dead(self, ids: Sequence[UUID], reason: str) -> list[UUID]:
        """Lead dead jobs to cancelled; return those it did (locked and moved-on rows are left)."""
        raise NotImplementedError

    def force_cancel(self, job_id: UUID, fence: int, worker: UUID, reason: str) -> bool:
        """End a running job as cancelled and raise its fence, so that its worker is refused."""
        raise NotImplementedError

    def notify(self, channel: str, payload: str) -> None:
        """Send a notification (PostgreSQL only), outside any transaction."""
        raise NotImplementedError

    # --- audit: read only ----------------------------------------

    def audit_rows(self, check: str, limit: int) -> list[dict[str, Any]]:
        """Return up to `limit` violations found by the query ``audit_<check>.sql``."""
        raise NotImplementedError

    def database_settings(self) -> dict[str, str]:
        """Return the server or file settings that durability and isolation depend on."""
        raise NotImplementedError


def storage_for(connection: BaseDatabaseWrapper, options: Options | None = None) -> Storage:
    """Return the storage of `connection`'s database, or the class that the options name."""
    if options is not None and options.storage:
        return import_string(options.storage)(connection)  # type: ignore[no-any-return]
    if connection.vendor == "postgresql":
        from jobqueue.storage.postgres import PostgresStorage

        return PostgresStorage(connection)
    if connection.vendor == "sqlite":
        from jobqueue.storage.sqlite import SQLiteStorage

        return SQLiteStorage(connection)
    raise NotImplementedError(
        f"jobqueue runs on PostgreSQL and SQLite, not on {connection.vendor}."
    )


def ids_of(records: Iterable[Any]) -> list[UUID]:
    """Return the ids of records in ascending order: the order in which rows are locked."""
    return sorted(record.id for record in records)
