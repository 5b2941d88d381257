"""The protocol's part for looking at the whole: how much there is, how old, and what is in the way.

Each is a plain read that costs the same however big the tables are. Whatever is counted is counted
up to a limit: an answer that equals it means "at least that many".
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class Backlog(NamedTuple):
    """The ready jobs of a queue. oldest_seconds: since the oldest of those counted was due."""

    queue: str
    ready: int
    oldest_seconds: float


class HorizonHolder(NamedTuple):
    """Who keeps dead rows from being removed.

    kind: session, prepared transaction, replication slot or standby. seconds: since its
    transaction began, None where there is none. transactions: how far its horizon lies behind.
    """

    kind: str
    pid: int | None
    name: str
    state: str
    seconds: float | None
    transactions: int


class TableState(NamedTuple):
    """What the server estimates of the table of jobs; its last vacuum in seconds ago."""

    live_rows: int
    dead_rows: int
    vacuumed_ago: float | None


class IdleSlot(NamedTuple):
    """A replication slot that nobody reads, and the log that the server keeps for it.

    state: reserved, extended, unreserved or lost, as ``wal_status`` says.
    """

    name: str
    kept_bytes: int
    state: str


class OpenTransaction(NamedTuple):
    """A transaction that a worker's session has had open for long."""

    worker: UUID
    pid: int
    state: str
    seconds: float


class HealthProtocol:
    """What status asks of a database."""

    def change_mark(self) -> str:
        """Return what differs from before if anything was committed since, by other connections.

        It may differ for no reason; equal marks, read on one connection, prove that nothing was.
        """
        raise NotImplementedError

    def state_counts(self, limit: int) -> dict[str, int]:
        """Return how many jobs are in each live state and in dead, at most `limit` of each.

        Scheduled and retrying ones are counted together: `limit` of both, by their due time.
        """
        raise NotImplementedError

    def estimated_count(self, state: str) -> int | None:
        """Return how many jobs the database's own statistics expect in a state; None: no idea."""
        return None

    def queue_backlogs(
        self, limit: int, max_queues: int, now: datetime | None = None
    ) -> list[Backlog]:
        """Return, for the first `max_queues` queues, their most urgent `limit` ready jobs."""
        raise NotImplementedError

    def blocked_counts(self, limit: int) -> dict[str, int]:
        """Return how many jobs are blocked for each reason, at most `limit` of each."""
        raise NotImplementedError

    def parked_counts(self, tasks: Sequence[str], limit: int) -> dict[str, int]:
        """Return how many jobs of each of `tasks` are blocked as unknown, at most `limit` each."""
        raise NotImplementedError

    def dead_by_error(self, fingerprints: Sequence[str], limit: int) -> dict[str, int]:
        """Return how many dead letters each of these errors has left, at most `limit` each."""
        raise NotImplementedError

    def backlog_ages(self, now: datetime | None = None) -> dict[str, float | None]:
        """Return seconds, None where none: oldest_unpromoted, oldest_unreaped."""
        raise NotImplementedError

    def horizon_holder(self) -> HorizonHolder | None:
        """Return who keeps dead rows from being removed for longest, None if nobody does."""
        return None

    def table_state(self) -> TableState | None:
        """Return what the server estimates of the table of jobs, None if it keeps no dead rows."""
        return None

    def idle_slots(self) -> list[IdleSlot]:
        """Return the replication slots that nobody reads, those first that keep most."""
        return []

    def open_transactions(self, seconds: float) -> list[OpenTransaction]:
        """Return transactions that workers have had open for longer, the oldest first."""
        return []
