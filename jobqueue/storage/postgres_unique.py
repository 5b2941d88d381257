"""Unique jobs on PostgreSQL: a partial unique index decides, row locks keep twins from starting."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from django.db import DatabaseError

from jobqueue.conf import CLAIM_WINDOW, COMMIT_IDLE_TIMEOUT, TWIN_PATIENCE_SECONDS
from jobqueue.exceptions import KeyBusy
from jobqueue.storage.connections import is_open, undoable_on
from jobqueue.storage.errors import LOCK_NOT_AVAILABLE, sqlstate
from jobqueue.storage.postgres_base import PostgresStatements
from jobqueue.storage.records import EndedJob, Inserted, NewJob, Starved, Twin
from jobqueue.storage.rows import new_job_row
from jobqueue.storage.statements import statement

STARVED_LOOK = 10
"""Jobs whose locks one look asks for: what claims pass over stands at the head."""
_SPACE = 0x6A72
"""First half of the advisory locks of jobs that somebody stands in line for."""

ON_CONFLICT = """ON CONFLICT (task, unique_key) WHERE unique_key IS NOT NULL
  AND (state IN ('blocked', 'ready', 'retrying', 'scheduled')
       OR (state = 'running' AND unique_until = 'done')
       OR unique_window_end IS NOT NULL) DO NOTHING"""
"""Names the index jobqueue_job_unique by its columns and its condition."""


class PostgresUnique(PostgresStatements):
    """The protocol's part for unique jobs."""

    def bounded[R](self, run: Callable[[], R], wait_seconds: float) -> R:
        with _key_errors(), self._short_waits(wait_seconds):
            return run()

    def insert_unique(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Inserted]:
        sql = statement(self.vendor, "insert_jobs", on_conflict=ON_CONFLICT)
        rows = json.dumps([new_job_row(n, job) for n, job in enumerate(jobs)], ensure_ascii=False)
        inserted = [Inserted(*row) for row in self._run(sql, {"rows": rows, "now": now})]
        new = {row.id for row in inserted}
        self._insert_tags([job for job in jobs if job.id in new])
        return inserted

    def find_twins(
        self, task: str, keys: Collection[str], now: datetime | None = None
    ) -> list[Twin]:
        rows = self._rows(
            "find_twins", task=task, keys=list(keys), patience=TWIN_PATIENCE_SECONDS, now=now
        )
        return [
            Twin(row[0], Inserted(*row[1:5]), row[5], bool(row[6]), bool(row[7])) for row in rows
        ]

    def lock_twins(self, ids: Collection[UUID], *, alone: bool) -> set[UUID]:
        strength = "NO KEY UPDATE" if alone else "SHARE"
        sql = statement(self.vendor, "lock_twins", strength=strength)
        return {row[0] for row in self._run(sql, {"ids": list(ids)})}

    def replace_twins(
        self, changes: Mapping[UUID, NewJob], now: datetime | None = None
    ) -> list[Inserted]:
        return self._change_twins("replace_twins", changes, now)

    def reschedule_twins(
        self, changes: Mapping[UUID, NewJob], now: datetime | None = None
    ) -> list[Inserted]:
        return self._change_twins("reschedule_twins", changes, now)

    def find_starved(
        self, queues: Sequence[str], tasks: Sequence[str], now: datetime | None = None
    ) -> Starved | None:
        rows = self._rows(
            "find_starved",
            queues=list(queues) or [row[0] for row in self._rows("live_queues")],
            everywhere=not queues,
            tasks=list(tasks),
            patience=TWIN_PATIENCE_SECONDS,
            window=CLAIM_WINDOW,
            limit=STARVED_LOOK,
            now=now,
        )
        return Starved._make(rows[0]) if rows else None

    def wait_in_line(self, job_id: UUID) -> bool:
        return bool(
            self._rows("wait_in_line", id=job_id, space=_SPACE, idle_timeout=COMMIT_IDLE_TIMEOUT)
        )

    def expire_twins(self, ids: Collection[UUID], now: datetime | None = None) -> list[EndedJob]:
        return [EndedJob._make(row) for row in self._rows("expire_twins", ids=list(ids), now=now)]

    def lapse_windows(self, ids: Collection[UUID], now: datetime | None = None) -> None:
        self._rows("lapse_windows", ids=list(ids), now=now)

    @contextmanager
    def _short_waits(self, seconds: float) -> Iterator[None]:
        """A transaction or a savepoint in which no statement waits longer for a lock."""
        was_open = is_open(self.connection)
        with undoable_on(self.connection):
            if not was_open:
                self.begin_operation(seconds)
                yield
                return
            ((before, _),) = self._rows("bound_lock_wait", milliseconds=seconds * 1000)
            yield
            self._rows("limit_lock_wait", milliseconds=before)

    def _change_twins(
        self, name: str, changes: Mapping[UUID, NewJob], now: datetime | None
    ) -> list[Inserted]:
        rows = [new_job_row(0, job) | {"id": twin.hex} for twin, job in changes.items()]
        text = json.dumps(rows, ensure_ascii=False)
        return [Inserted(*row) for row in self._rows(name, rows=text, ids=list(changes), now=now)]

    def _insert_tags(self, jobs: Sequence[NewJob]) -> None:
        tags = [(job.id, tag) for job in jobs for tag in job.tags]
        if tags:
            self._rows("insert_tags", ids=[t[0] for t in tags], tags=[t[1] for t in tags])


@contextmanager
def _key_errors() -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        if sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise
        raise KeyBusy(
            "A transaction of somebody else is making, changing or starting a job with this unique "
            "key, and did not end in time. Nothing was enqueued; try again."
        ) from error
