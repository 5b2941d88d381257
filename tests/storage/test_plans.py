"""Hot statements stay on their indexes, whatever history and backlog lie beside them.

The statements are the storages' own, caught on their way to the database and explained.
"""

import json
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction

from jobqueue.exceptions import LeaseLost
from jobqueue.ids import new_identity, new_job_id
from jobqueue.models import Job, JobTag, Limit
from jobqueue.storage import Storage
from jobqueue.storage.postgres import PostgresStorage
from jobqueue.storage.records import (
    FRONT,
    AgeRule,
    Claim,
    Limited,
    NewLine,
    NewProgress,
    RequestKey,
    Success,
)
from jobqueue.storage.retention import FIRST_ID
from jobqueue.storage.rollups import Span
from jobqueue.storage.sqlite import SQLiteStorage
from jobqueue.storage.sqlite_values import adapted
from jobqueue.storage.statements import statement
from tests.storage.making import (
    analyze,
    claim,
    claimed,
    ending,
    insert,
    new_job,
    register,
    run_sql,
)

QUEUES = [f"queue{n}" for n in range(50)]
TASKS = [f"app.task{n}" for n in range(50)]

FILL = """
INSERT INTO jobqueue_job (
    id, backend, task, queue, priority, state, arguments, run_at, rank, enqueued_at, attempts,
    failures, suspicions, alone, on_crash, timeout, fence, worker, claimed_at, deadline,
    finished_at, error_class, error_message, error_fingerprint, reason, unique_until, pending,
    has_children, schedule, created_by, limit_key, version)
SELECT lpad(to_hex(%(first)s + n), 32, '0')::uuid, 'default', 'app.task' || n %% 50,
       'queue' || n %% %(queues)s, 0, %(state)s, '{}', now() + n * interval '1 second',
       1700000000000000 + n * 1000, now(), %(ran)s, 0, 0, %(alone)s, 'retry', 60, %(ran)s,
       CASE WHEN %(state)s = 'running' THEN md5((n %% 20)::text)::uuid END,
       CASE WHEN %(state)s = 'running' THEN now() END,
       CASE WHEN %(state)s = 'running' THEN now() + interval '1 hour' END,
       CASE WHEN %(state)s IN ('succeeded', 'dead') THEN now() END,
       '', '', CASE WHEN %(state)s = 'dead' THEN md5(n::text) ELSE '' END,
       CASE WHEN %(state)s = 'blocked' THEN %(reason)s ELSE '' END, '', 0, false,
       '', '', CASE WHEN %(reason)s = 'limit' THEN 'key:' || n %% 300 END, 1
FROM generate_series(1, %(count)s) AS n
"""
ATTEMPTS = """
INSERT INTO jobqueue_attempt (job_id, number, fence, worker, task, queue, outcome, charged,
                              started_at, finished_at, error_class, error_message,
                              error_fingerprint, traceback)
SELECT id, 1, 1, id, task, queue, 'succeeded', false, now(), now(), '', '', '', ''
FROM jobqueue_job WHERE state = 'succeeded' LIMIT 20000
"""
STEPS = """
INSERT INTO jobqueue_step (job_id, name, result, fence, recorded_at)
SELECT id, 'charge', 'null', 1, now() FROM jobqueue_job WHERE state = 'succeeded' LIMIT 5000
"""
KEYS = """
INSERT INTO jobqueue_idempotencykey (caller, route, key, fingerprint, created_at, expires_at)
SELECT 'user:' || n % 50, 'jobs', md5(n::text), md5(n::text), now(),
       now() + (n - 100) * interval '1 minute'
FROM generate_series(1, 20000) AS n
"""
ACTIONS = """
INSERT INTO jobqueue_action (at, actor, surface, verb, target, count)
SELECT now() - n * interval '1 minute', 'kim', 'shell', 'requeue', 'jobs', 1
FROM generate_series(1, 20000) AS n
"""
BACKLOG = (
    {"state": "succeeded", "count": 60_000, "ran": 1},
    {"state": "scheduled", "count": 40_000},
    {"state": "ready", "count": 10_000},
    {"state": "ready", "count": 20, "alone": True},
    {"state": "blocked", "count": 500},
    {"state": "running", "count": 200, "ran": 1},
    {"state": "dead", "count": 200, "ran": 1},
    {"state": "ready", "count": 2_000, "reason": "limit"},
    {"state": "blocked", "count": 20_000, "reason": "limit"},
    {"state": "running", "count": 300, "ran": 1, "reason": "limit"},
    {"state": "succeeded", "count": 20_000, "ran": 1, "reason": "limit"},
)

Calls = dict[str, tuple[str | None, Callable[[Storage], object]]]
"""By name: the index that must be read (None: any, no table as a whole), and the call."""


def calls() -> Calls:
    """Return what is hot, with arguments that name nothing that exists."""
    worker, job_id = new_identity(), new_job_id()
    front = [FRONT] * len(QUEUES)
    some = [new_job_id() for _ in range(200)]
    held = claim_of(worker)
    successes = [Success(each, 1, "null", 1.0, 0.0) for each in some]
    ages = [AgeRule("succeeded", None, 60.0), AgeRule("dead", "mail", None)]
    amounts = [NewProgress(each, 1, 1.0, None, "", 0.0) for each in some]
    lines = [NewLine(each, 1, n, 20, "shop", "", 0.0) for each in some for n in range(5)]
    primary, history = "jobqueue_job_pkey", "jobqueue_attempt_pkey"
    # SQLite has no gaps, and does not say how it finds the greatest id.
    history_on_postgres = history if connection.vendor == "postgresql" else None
    spans = [Span(100, 1_099), Span(7, 7)]
    keys = [f"key:{n}" for n in range(50)]
    jobs = [Limited(each, 0, QUEUES[0], keys[0], False) for each in some[:8]]
    return {
        "claim": ("jobqueue_job_ready", lambda s: s.claim_many(worker, QUEUES, TASKS, 200)),
        "claim one queue": (
            "jobqueue_job_ready",
            lambda s: s.claim_many(worker, QUEUES[:1], TASKS[:1], 1),
        ),
        "claim alone": ("jobqueue_job_alone", lambda s: s.claim_alone(worker, QUEUES, TASKS)),
        "alone waiting": ("jobqueue_job_alone", lambda s: s.alone_waiting(QUEUES, TASKS)),
        "window": ("jobqueue_job_ready", lambda s: s.read_windows(QUEUES, front, TASKS)),
        "live queues": ("jobqueue_job_ready", lambda s: s.live_queues()),
        "finish": (primary, lambda s: s.finish_one(held, "null", 1.0)),
        "finish many": (primary, lambda s: s.finish_many(worker, successes)),
        "end": (primary, lambda s: s.end_many([ending(held, "ready")])),
        "end many": (
            primary,
            lambda s: s.end_many([ending(held._replace(id=each), "ready") for each in some]),
        ),
        "hold": (primary, lambda s: s.hold(held, 5.0)),
        "step": (primary, lambda s: s.record_step(held, "charge", "1")),
        "find step": ("jobqueue_step_job_name", lambda s: s.find_step(job_id, "charge")),
        "running of": ("jobqueue_job_running", lambda s: s.running_of([worker])),
        "orphans": ("jobqueue_job_running", lambda s: s.orphan_workers()),
        "overdue": ("jobqueue_job_running", lambda s: s.overdue(5.0)),
        "ask to cancel": (None, lambda s: s.ask_to_cancel(some, "")),
        "asked": (None, lambda s: s.asked(1_000)),
        "forget requests": (None, lambda s: s.forget_requests(60.0)),
        "promote": ("jobqueue_job_due", lambda s: s.promote(1_000)),
        "twins": ("jobqueue_job_unique", lambda s: s.find_twins(TASKS[0], ["a", "b"])),
        "starved": ("jobqueue_job_ready", lambda s: s.find_starved(QUEUES, TASKS)),
        "lock twins": (None, lambda s: s.lock_twins(some, alone=False)),
        "replace twin": (primary, lambda s: s.replace_twins({job_id: new_job()})),
        "reschedule twin": (primary, lambda s: s.reschedule_twins({job_id: new_job()})),
        "lapse": (primary, lambda s: s.lapse_windows(some)),
        "expire": ("jobqueue_job_expires", lambda s: s.expire(1_000)),
        "park": ("jobqueue_job_ready", lambda s: s.park_unknown(TASKS[:49], 1_000)),
        "admit": ("jobqueue_job_blocked", lambda s: s.admit_known(TASKS, 1_000)),
        "requeue": (primary, lambda s: s.requeue_many(some, 60.0)),
        "cancel": (primary, lambda s: s.cancel_waiting(some, "")),
        "reschedule": (
            primary,
            lambda s: s.reschedule_many(some, [datetime.now(UTC)] * len(some), 60.0),
        ),
        "run now": (primary, lambda s: s.run_now_many(some, 60.0)),
        "reprioritize": (primary, lambda s: s.reprioritize_many(some, 5, 60.0)),
        "move": (primary, lambda s: s.move_many(some, QUEUES[1])),
        "state counts": ("jobqueue_job_dead", lambda s: s.state_counts(10_001)),
        "queue backlogs": ("jobqueue_job_ready", lambda s: s.queue_backlogs(10_001, 1_000)),
        "blocked counts": ("jobqueue_job_blocked", lambda s: s.blocked_counts(10_001)),
        "parked counts": ("jobqueue_job_blocked", lambda s: s.parked_counts(TASKS, 10_001)),
        "dead by error": ("jobqueue_job_error", lambda s: s.dead_by_error(["0" * 32], 1_001)),
        "ages": ("jobqueue_job_due", lambda s: s.backlog_ages()),
        "look for uncounted": (history_on_postgres, lambda s: s.has_uncounted()),
        "read span": (history, lambda s: s.read_span(17, 1_000)),
        "tally by task": (history, lambda s: s.tally_attempts(spans, "task")),
        "tally by worker": (history, lambda s: s.tally_attempts(spans, "worker")),
        "tally errors": (history, lambda s: s.tally_errors(spans, 100)),
        "find gaps": (history_on_postgres, lambda s: s.find_gaps(spans)),
        "progress": (None, lambda s: s.write_progress(amounts)),
        "log lines": (None, lambda s: s.write_lines(lines, 200)),
        "find old": (primary, lambda s: s.find_old(ages, FIRST_ID, 5_000, 500)),
        "find unscrubbed": (
            primary,
            lambda s: s.find_old(ages, FIRST_ID, 5_000, 500, unscrubbed=True),
        ),
        "prune": (primary, lambda s: s.prune(some, 60.0)),
        "scrub": (primary, lambda s: s.scrub_arguments(some, 60.0)),
        "find request": (
            "jobqueue_idempotencykey_request",
            lambda s: s.find_request(RequestKey("user:7", "jobs", "k", "")),
        ),
        "prune requests": ("jobqueue_idempotencykey_expiry", lambda s: s.prune_requests(500)),
        "prune actions": ("jobqueue_action_at", lambda s: s.prune_actions(500, 86_400.0)),
        "discard": (None, lambda s: s.discard_dead(some, "")),
        "live of schedule": ("jobqueue_job_schedule", lambda s: s.live_of_schedule("nightly")),
        "admit overlapping": ("jobqueue_job_blocked", lambda s: s.admit_overlapping(1_000)),
        "claim beside limited": (
            "jobqueue_job_ready",
            lambda s: s.claim_beside_limited(worker, QUEUES, TASKS, 200),
        ),
        "find limited": ("jobqueue_job_ready", lambda s: s.find_limited(QUEUES, TASKS, 1_000)),
        "rooms": ("jobqueue_job_limit", lambda s: s.read_rooms(keys)),
        "room of a queue": ("jobqueue_job_running", room_of_a_queue),
        "first parked": ("jobqueue_job_limit", lambda s: s._first_parked(keys[:4], QUEUES)),
        "claim chosen": (primary, lambda s: s.claim_chosen(worker, jobs, None)),
        "park limited": (primary, lambda s: s.park_limited(some)),
        "admit limited": (
            "jobqueue_job_limit",
            lambda s: s.admit_limited({"key:1": 3, "key:2": 1}),
        ),
        "parked keys": ("jobqueue_job_limit", lambda s: s.parked_keys("", 1_000)),
        "force cancel": (primary, lambda s: s.force_cancel(job_id, 1, worker, "")),
    }


def room_of_a_queue(storage: Storage) -> object:
    Limit.objects.get_or_create(key="queue:queue1", running=1)
    return storage.read_rooms(["queue:queue1"])


def claim_of(worker: UUID) -> Claim:
    return Claim(
        new_job_id(), 1, worker, TASKS[0], QUEUES[0], "default", "{}", 0, 5, 0, 60.0, False,
        time.time(), 0,
    )  # fmt: skip


class CaughtError(Exception):
    """Carries a statement instead of running it."""


# --- PostgreSQL -----------------------------------------------------------------------------------


class CatchingPostgres(PostgresStorage):
    def _run(self, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        raise CaughtError(sql, parameters)


def fill(**changes: Any) -> None:
    """Add jobs in bulk."""
    run_sql(
        connection,
        FILL,
        {"first": 0, "queues": 50, "ran": 0, "alone": False, "reason": "unknown task", **changes},
    )


def nodes(plan: dict[str, Any]) -> Iterable[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def explain(call: Callable[[Storage], object]) -> list[dict[str, Any]]:
    try:
        with transaction.atomic():  # where nothing goes out past the cursor
            call(CatchingPostgres(connection))
    except CaughtError as caught:
        sql, parameters = caught.args
    (found,) = run_sql(connection, f"EXPLAIN (FORMAT JSON) {sql}", parameters)
    document = found[0] if isinstance(found[0], list) else json.loads(found[0])
    return list(nodes(document[0]["Plan"]))


@pytest.mark.postgres_only("SQLite plans without looking at the rows, see below")
def test_hot_statements_never_read_history_or_the_schedule() -> None:
    for n, rows in enumerate(BACKLOG):
        fill(first=n * 1_000_000, **rows)
    run_sql(connection, ATTEMPTS)
    run_sql(connection, STEPS)
    run_sql(connection, KEYS)
    run_sql(connection, ACTIONS)
    analyze(*(f"jobqueue_{t}" for t in ("job", "attempt", "step", "idempotencykey", "action")))
    wrong = {}
    for name, (index, call) in calls().items():
        plan = explain(call)
        whole = {
            node["Relation Name"]
            for node in plan
            if node["Node Type"] == "Seq Scan"
            and node["Relation Name"] in ("jobqueue_job", "jobqueue_attempt")
        }
        read = {node["Index Name"] for node in plan if "Index Name" in node}
        if whole or index not in {None, *read}:
            wrong[name] = {"whole": whole, "read": read}
    assert wrong == {}


@pytest.mark.postgres_only("SQLite plans without looking at the rows, see below")
@pytest.mark.parametrize("state", ["succeeded", "running"])
def test_a_batch_that_goes_out_past_the_cursor_is_found_by_primary_key(state: str) -> None:
    fill(state=state, count=20_000, first=1, ran=1)
    analyze("jobqueue_job")
    sql = statement("postgresql", "finish_jobs", rows=statement("postgresql", "finish_soon"))
    times = [1.0] * 200
    given = {
        "worker": new_identity(), "ids": [new_job_id() for _ in times], "fences": [1] * 200,
        "results": ["null"] * 200, "started": times, "ended": times, "patience": "50ms",
    }  # fmt: skip
    (found,) = run_sql(connection, f"EXPLAIN (FORMAT JSON) {sql}", given)
    jobs = [n for n in nodes(found[0][0]["Plan"]) if n.get("Relation Name") == "jobqueue_job"]
    scans = [node for node in jobs if node["Node Type"] != "ModifyTable"]
    assert {node["Index Name"] for node in scans} == {"jobqueue_job_pkey"}
    assert len(scans) == 1


@pytest.mark.postgres_only("SQLite plans without looking at the rows, see below")
def test_a_claim_reads_its_queues_in_order_and_sorts_only_what_it_found() -> None:
    fill(state="ready", count=15_000, queues=5)  # more in a queue than its window
    analyze("jobqueue_job")
    plan = explain(calls()["claim"][1])
    scans = [node for node in plan if node.get("Index Name") == "jobqueue_job_ready"]
    assert {node["Node Type"] for node in scans} <= {"Index Scan", "Index Only Scan"}
    windows = [node for node in plan if node["Node Type"] == "Limit" and node["Plans"][0] in scans]
    assert len(windows) == 1


def test_jobs_of_a_tag_are_found_by_its_index() -> None:
    tags = [JobTag(job_id=new_job_id(), tag=f"order:{n}") for n in range(3_000)]
    JobTag.objects.bulk_create(tags)
    analyze("jobqueue_jobtag")
    found = Job.objects.tagged("order:42").explain()
    assert "jobqueue_tag_by_tag" in found


# --- SQLite ---------------------------------------------------------------------------------------


ON_SQLITE = {
    "jobqueue_attempt_pkey": "INTEGER PRIMARY KEY",
    "jobqueue_job_pkey": "sqlite_autoindex_jobqueue_job_1",
    "jobqueue_step_job_name": "sqlite_autoindex_jobqueue_step_1",
    "jobqueue_idempotencykey_request": "sqlite_autoindex_jobqueue_idempotencykey_1",
}
PARTIAL = re.compile(
    "USING INDEX jobqueue_job_"
    "(alone|running|due|expires|unique|blocked|dead|error|ready|schedule|limit)"
)


@pytest.mark.sqlite_only("PostgreSQL plans by the rows, see above")
@pytest.mark.parametrize("name", list(calls()))
def test_hot_statements_search_by_index_on_sqlite(storage: Storage, name: str) -> None:
    """SQLite decides by the schema alone: an index it may use here is used with any data."""
    plans: list[str] = []

    class ExplainingSQLite(SQLiteStorage):
        def _rows(self, name: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
            sql = statement(self.vendor, name)
            with self.connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}", adapted(parameters))
                plans.extend(row[3] for row in cursor.fetchall())
            return super()._rows(name, **parameters)

        def _changed(self, name: str, /, **parameters: Any) -> int:
            return len(self._rows(name, **parameters))

    index, call = calls()[name]
    if name == "starved":
        pytest.skip("nothing starves on SQLite, which asks nothing: its writers take turns")
    claimed(storage)
    for changes in ({}, {"task": TASKS[0], "queue": QUEUES[0]}, {"delay": 0.001}):
        insert(storage, **changes)
    with suppress(LeaseLost):  # the call means no job that exists
        call(ExplainingSQLite(storage.connection))
    expected = ON_SQLITE.get(str(index), index)
    jobs = [plan for plan in plans if re.search(r"\b(jobqueue_job|[js])\b", plan)]
    whole = [plan for plan in jobs if plan.startswith("SCAN") and not PARTIAL.search(plan)]
    assert whole == []
    assert expected is None or any(expected in plan for plan in plans), plans


# --- a held horizon -------------------------------------------------------------------------------


@pytest.mark.postgres_only("SQLite keeps no dead rows")
def test_finishing_costs_the_same_however_many_this_worker_has_finished(
    storage: Storage, other: Storage
) -> None:
    """An open transaction keeps every ended run in the index of running jobs."""
    fill(state="succeeded", count=20_000, first=1, ran=1)
    analyze("jobqueue_job")
    worker = register(storage)
    run_sql(other.connection, "BEGIN ISOLATION LEVEL REPEATABLE READ")
    run_sql(other.connection, "SELECT count(*) FROM jobqueue_job")
    before = blocks_to_finish(claimed(storage, worker))
    insert(storage, 1_000)
    for _ in range(5):
        claims = claim(storage, worker, 200)
        storage.finish_many(worker, [Success(c.id, c.fence, "null", 1.0, 0.0) for c in claims])
    after = blocks_to_finish(claimed(storage, worker))
    run_sql(other.connection, "ROLLBACK")
    assert after <= before + 100  # a page more here and there, but not the thousand rows


def blocks_to_finish(held: Claim) -> int:
    """Return how many blocks of the database the finish of one job touches."""
    try:
        CatchingPostgres(connection).finish_one(held, "null", 1.0)
    except CaughtError as caught:
        sql, parameters = caught.args
    with transaction.atomic():
        explained = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}"
        ((document,),) = run_sql(connection, explained, parameters)
    return int(document[0]["Plan"]["Shared Hit Blocks"])
