"""The storage protocol's part for unique jobs; see `jobqueue.unique` for what they are.

The order in which an enqueue calls these, and why, is in `jobqueue.engine.uniqueness`. All that
one enqueue calls runs in one `bounded` block: the caller's transaction goes on whatever is raised.

On SQLite an enqueue holds the database's write lock: what it sees stays true until it ends, so
there is nothing to lock, nothing to wait for, and no conflict that was not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from jobqueue.storage.records import EndedJob, Inserted, NewJob, Starved, Twin


class UniqueJobs:
    """What the engine asks of a database about unique keys."""

    def bounded[R](self, run: Callable[[], R], wait_seconds: float) -> R:
        """Return ``run()`` from a transaction, or from a savepoint of the one that is open.

        No statement in it waits longer for a lock. Raise KeyBusy if one would have had to; nothing
        of it is left then, nor of its bound.
        """
        raise NotImplementedError

    def insert_unique(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Inserted]:
        """Insert those of `jobs` whose key nobody holds, and their tags; return them.

        The keys are distinct and ascend: two enqueues that share several meet them in one order.
        """
        raise NotImplementedError

    def find_twins(
        self, task: str, keys: Collection[str], now: datetime | None = None
    ) -> list[Twin]:
        """Return the jobs of `task` that hold `keys`; nothing is locked."""
        raise NotImplementedError

    def lock_twins(self, ids: Collection[UUID], *, alone: bool) -> set[UUID]:
        """Keep waiting jobs from starting until the transaction ends; return those that wait.

        alone: shut out other enqueues, too, so that a claim which waits has its turn.
        """
        raise NotImplementedError

    def replace_twins(
        self, changes: Mapping[UUID, NewJob], now: datetime | None = None
    ) -> list[Inserted]:
        """Give waiting jobs the arguments, priority and expiry of others; return those changed."""
        raise NotImplementedError

    def reschedule_twins(
        self, changes: Mapping[UUID, NewJob], now: datetime | None = None
    ) -> list[Inserted]:
        """Give waiting jobs the time to run and expiry of others; return those changed."""
        raise NotImplementedError

    def find_starved(
        self, queues: Sequence[str], tasks: Sequence[str], now: datetime | None = None
    ) -> Starved | None:
        """Return the most urgent unique job that claims pass over because others keep it locked.

        queues: where to look, empty for all. tasks: of which.
        """
        raise NotImplementedError

    def wait_in_line(self, job_id: UUID) -> bool:
        """Lock a job's row as soon as its turn comes.

        False if it does not wait any more, or if somebody else stands in line for it. In a
        `bounded` block, which says how long, and in which it is claimed then.
        """
        raise NotImplementedError

    def expire_twins(self, ids: Collection[UUID], now: datetime | None = None) -> list[EndedJob]:
        """Cancel those of these waiting jobs whose time to start has passed; return them."""
        raise NotImplementedError

    def lapse_windows(self, ids: Collection[UUID], now: datetime | None = None) -> None:
        """Let ended jobs whose windows are over give up their keys."""
        raise NotImplementedError
