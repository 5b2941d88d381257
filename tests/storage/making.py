"""Jobs, workers and claims for the tests of storage: made by storage itself, as the engine does."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.ids import new_identity, new_job_id
from jobqueue.models import Attempt, Job
from jobqueue.payload import ErrorText
from jobqueue.storage import Storage
from jobqueue.storage.records import AgeRule, Claim, Ending, NewJob, NewWorker
from jobqueue.storage.retention import FIRST_ID

QUEUE, TASK = "default", "app.task"
AGING_SECONDS = 60.0
FAILURE = ErrorText("builtins.ValueError", "no such order", "Traceback …", "0" * 32)


def new_job(**changes: Any) -> NewJob:
    job = NewJob(
        id=new_job_id(),
        backend="default",
        task=TASK,
        queue=QUEUE,
        arguments='{"args":[],"kwargs":{}}',
        timeout=60.0,
        aging_seconds=AGING_SECONDS,
        max_attempts=5,
    )
    return replace(job, **changes)


def insert(storage: Storage, count: int = 1, *, now: datetime | None = None, **changes: Any):
    """Insert `count` jobs and return their ids in the order given to storage."""
    jobs = [new_job(**changes) for _ in range(count)]
    return [row.id for row in storage.insert_jobs(jobs, now)]


def register(storage: Storage, **changes: Any) -> UUID:
    """Register a worker that lives in this process; return its identity."""
    identity = new_identity()
    if storage.one_host:
        storage.hold_life_lock(identity)
    worker = NewWorker(
        id=identity,
        kind="worker",
        name="tests",
        host="here",
        pid=os.getpid(),
        backend="default",
        version="0",
        lease_seconds=60.0,
        queues=(QUEUE,),
        tasks=(TASK,),
        slots=4,
    )
    storage.register_worker(replace(worker, **changes))
    return identity


def claim(storage: Storage, worker: UUID, limit: int = 10, **changes: Any) -> list[Claim]:
    return storage.claim_many(
        worker, **{"queues": [QUEUE], "tasks": [TASK], **changes}, limit=limit
    )


def claimed(storage: Storage, worker: UUID | None = None, **changes: Any) -> Claim:
    """Insert one job and claim it."""
    insert(storage, **changes)
    (found,) = claim(storage, worker or register(storage))
    return found


def ending(of: Claim, state: str, **changes: Any) -> Ending:
    return Ending(id=of.id, fence=of.fence, worker=of.worker, state=state, **changes)


def buried(storage: Storage, worker: UUID | None = None) -> UUID:
    """Make a dead letter and return its id."""
    held = claimed(storage, worker)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True, error=FAILURE)])
    return held.id


def prune(storage: Storage, state: str, older_than: float, limit: int = 10) -> int:
    """Delete a batch of jobs that ended in `state`; return how many."""
    found, _ = storage.find_old([AgeRule(state, None, older_than)], FIRST_ID, 1_000, limit)
    return len(storage.prune(found, older_than)) if found else 0


def row(job_id: UUID) -> Job:
    return Job.objects.get(pk=job_id)


def states(*ids: UUID) -> list[str]:
    return [row(each).state for each in ids]


def attempts(job_id: UUID) -> list[Attempt]:
    return list(Attempt.objects.filter(job_id=job_id).order_by("number"))


def everything() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return all jobs and attempts as they are, to show that nothing was written."""
    return list(Job.objects.order_by("id").values()), list(Attempt.objects.order_by("id").values())


def run_sql(connection: BaseDatabaseWrapper, sql: str, parameters: Any = None) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []


def analyze(*tables: str, vacuum: bool = False) -> None:
    """Tell the planner what lies in these tables of the default database, from every row and page.

    From the random sample that PostgreSQL takes of a table of more than 30,000 rows, plans may
    differ from run to run.
    """
    command = "VACUUM ANALYZE" if vacuum else "ANALYZE"
    if connection.vendor == "postgresql":
        run_sql(connection, "SET default_statistics_target TO 1000")  # 300,000 rows and pages
    for table in tables:
        run_sql(connection, f"{command} {table}")
    if connection.vendor == "postgresql":
        run_sql(connection, "RESET default_statistics_target")


@contextmanager
def refusing_ends(*jobs: UUID) -> Iterator[None]:
    """Let the database refuse whatever ends a run of these jobs, as a project's trigger may."""
    if connection.vendor == "postgresql":
        chosen = ", ".join(f"'{job_id}'" for job_id in jobs)
        run_sql(
            connection,
            "CREATE FUNCTION refuse_end() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE 'refused by the project'; END$$",
        )
        event, action = "FOR EACH ROW", "EXECUTE FUNCTION refuse_end()"
        drop = "DROP TRIGGER refuse_end ON jobqueue_job", "DROP FUNCTION refuse_end()"
    else:
        chosen = ", ".join(f"'{job_id.hex}'" for job_id in jobs)
        event, action = "", "BEGIN SELECT RAISE(ABORT, 'refused by the project'); END"
        drop = ("DROP TRIGGER refuse_end",)
    condition = f"OLD.id IN ({chosen}) AND OLD.state = 'running'"
    run_sql(
        connection,
        f"CREATE TRIGGER refuse_end BEFORE UPDATE ON jobqueue_job {event} "
        f"WHEN ({condition}) {action}",
    )
    try:
        yield
    finally:
        for statement in drop:
            run_sql(connection, statement)


def multiply(template: UUID, ids: Sequence[UUID]) -> None:
    """Insert a copy of the job `template` under each of `ids`, in one statement."""
    columns = ", ".join(f.column for f in Job._meta.concrete_fields if f.column != "id")
    if connection.vendor == "postgresql":
        source, given = "unnest(%s::uuid[]) AS i(value)", list(ids)
        chosen: Any = template
    else:
        source, given = "json_each(%s) AS i", json.dumps([job_id.hex for job_id in ids])
        chosen = template.hex
    copied = ", ".join(f"t.{column}" for column in columns.split(", "))
    run_sql(
        connection,
        f"INSERT INTO jobqueue_job (id, {columns}) SELECT i.value, {copied} "
        f"FROM jobqueue_job t, {source} WHERE t.id = %s",
        [given, chosen],
    )
