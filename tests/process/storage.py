"""Storages in which a test can make a process die or freeze at a named point.

    claim.before_commit, claim.after_commit    around the claim's COMMIT
    finish.before_commit                       a job's finish is done, its COMMIT is not sent

A reaper's look at the life locks is noted ("look"), so that a test can wait for it.
"""

from contextlib import nullcontext
from typing import Any

from jobqueue.storage.connections import transaction_on
from jobqueue.storage.postgres import PostgresStorage
from jobqueue.storage.records import Claim
from jobqueue.storage.sqlite import SQLiteStorage
from tests.process.folder import folder

FAULTY = {
    "postgresql": "tests.process.storage.FaultyPostgres",
    "sqlite": "tests.process.storage.FaultySQLite",
}


class Faulty:
    """The points; mixed into the storage of each database."""

    def claim_many(self, *args: Any, **kwargs: Any) -> list[Claim]:
        planted = folder().is_planted("claim.before_commit")
        with transaction_on(self.connection) if planted else nullcontext():
            claims = super().claim_many(*args, **kwargs)
            if planted and claims:
                folder().strike("claim.before_commit")
        if claims:
            folder().strike("claim.after_commit")
        return claims

    def finish_one(self, *args: Any, **kwargs: Any) -> bool:
        answer = super().finish_one(*args, **kwargs)
        folder().strike("finish.before_commit")
        return answer


class FaultyPostgres(Faulty, PostgresStorage):
    """PostgreSQL with faults."""

    def life_locks(self) -> set[int]:
        locks = super().life_locks()
        folder().note("look", locks=sorted(locks))
        return locks


class FaultySQLite(Faulty, SQLiteStorage):
    """SQLite with faults."""
