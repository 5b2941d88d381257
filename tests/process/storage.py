"""Storages in which a test can make a process die or freeze at a named point.

    claim.before_commit, claim.after_commit    around the claim's COMMIT
    running.read                               what a worker holds was read, nothing was done
    finish.before_commit                       a job's finish is done, its COMMIT is not sent
    finish.idle                                the same, and the server ends an idle session at once

A reaper's look at the life locks is noted ("look"), so that a test can wait for it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from uuid import UUID

from jobqueue.engine.proof import backend_pid
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.postgres import PostgresStorage
from jobqueue.storage.records import Claim, Held, Limited
from jobqueue.storage.sqlite import SQLiteStorage
from project.demo.unguarded import UnguardedStorage
from tests.process.folder import folder

UNGUARDED = "tests.process.storage.Unguarded"
FAULTY = {
    "postgresql": "tests.process.storage.FaultyPostgres",
    "sqlite": "tests.process.storage.FaultySQLite",
}


class Faulty:
    """The points; mixed into the storage of each database."""

    def claim_many(self, *args: Any, **kwargs: Any) -> list[Claim]:
        with self._around_a_claim() as noted:
            claims = super().claim_many(*args, **kwargs)
            noted.extend(claims)
        return claims

    def claim_beside_limited(self, *args: Any, **kwargs: Any) -> tuple[list[Claim], list[Limited]]:
        with self._around_a_claim() as noted:
            claims, limited = super().claim_beside_limited(*args, **kwargs)
            noted.extend(claims)
        return claims, limited

    @contextmanager
    def _around_a_claim(self) -> Iterator[list[Claim]]:
        claims: list[Claim] = []
        planted = folder().is_planted("claim.before_commit")
        with transaction_on(self.connection) if planted else nullcontext():
            yield claims
            if planted and claims:
                folder().strike("claim.before_commit", jobs=len(claims))
        if claims:
            folder().strike("claim.after_commit", jobs=len(claims))

    def running_of(self, workers: Sequence[UUID]) -> list[Held]:
        held = super().running_of(workers)
        if held:
            folder().strike("running.read")
        return held

    def finish_one(self, *args: Any, **kwargs: Any) -> None:
        super().finish_one(*args, **kwargs)
        folder().strike("finish.before_commit")


class FaultyPostgres(Faulty, PostgresStorage):
    """PostgreSQL with faults."""

    def finish_one(self, *args: Any, **kwargs: Any) -> None:
        super().finish_one(*args, **kwargs)
        if folder().is_planted("finish.idle"):
            self._run("SET LOCAL idle_in_transaction_session_timeout = '50ms'", {})
            folder().strike("finish.idle", backend=backend_pid(self.connection))

    def life_locks(self) -> set[int]:
        locks = super().life_locks()
        folder().note("look", locks=sorted(locks))
        return locks


class Unguarded(Faulty, UnguardedStorage):
    """A finish that matches the job's id alone: what tests of the guard must be able to see."""


class FaultySQLite(Faulty, SQLiteStorage):
    """SQLite with faults."""
