"""A database after some weeks: millions of jobs that have ended, and as many live ones as one asks.

    fill(connection, finished=5_000_000, live=200_000)

Made on the server, by one INSERT a kind. The shares are meant to be unkind to lists: jobs that are
scheduled were enqueued before all that has ended since, dead ones lie everywhere in between.
"""

from __future__ import annotations

from typing import Any

DAYS = 7
FINISHED = {"succeeded": 0.97, "cancelled": 0.02, "dead": 0.01}
LIVE = {"ready": 0.6, "scheduled": 0.3, "retrying": 0.07, "blocked": 0.0295, "running": 0.0005}
"""Shares of each state."""
OLDEST = ("scheduled", "blocked")
"""States whose jobs were enqueued before everything else."""

JOBS = """
INSERT INTO jobqueue_job (
    id, backend, task, queue, priority, state, arguments, run_at, rank, enqueued_at, max_attempts,
    attempts, failures, suspicions, alone, on_crash, timeout, fence, worker, claimed_at, deadline,
    finished_at, result, error_class, error_message, error_fingerprint, reason, unique_until,
    pending, has_children, schedule, created_by, version)
SELECT
    (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
        || substr(md5(%(state)s || n), 1, 3) || '8' || substr(md5(%(state)s || n), 4, 15))::uuid,
    'default', 'shop.tasks.task' || n %% 20,
    (ARRAY['default', 'mail', 'stock', 'payments'])[1 + n %% 4],
    n %% 3, %(state)s,
    ('{"args": [' || n || '], "kwargs": {"note": "' || repeat('x', 100) || '"}}')::json,
    CASE WHEN %(state)s IN ('scheduled', 'retrying') THEN now() + n * interval '1 second'
         ELSE at END,
    extract(epoch FROM at)::bigint * 1000000, at, 5, %(ran)s, %(failed)s, 0, false, 'retry', 60,
    %(ran)s,
    CASE WHEN %(state)s = 'running' THEN md5('worker' || n %% 8)::uuid END,
    CASE WHEN %(state)s = 'running' THEN now() END,
    CASE WHEN %(state)s = 'running' THEN now() + interval '1 hour' END,
    CASE WHEN %(ended)s THEN at + interval '2 seconds' END,
    CASE WHEN %(state)s = 'succeeded' THEN '{"sent": true}'::json END,
    CASE WHEN %(failed)s > 0 THEN 'shop.errors.Error' || n %% 30 ELSE '' END,
    CASE WHEN %(failed)s > 0 THEN 'no such order: ' || n ELSE '' END,
    CASE WHEN %(failed)s > 0 THEN md5('error' || n %% 30) ELSE '' END,
    CASE %(state)s WHEN 'blocked' THEN 'unknown task' WHEN 'dead' THEN 'out of attempts'
         ELSE '' END,
    '', 0, false, CASE WHEN n %% 50 = 0 THEN 'nightly' ELSE '' END, '', 1
FROM (
    SELECT n, now() - %(from)s * interval '1 day'
              + n * (%(days)s * interval '1 day' / %(count)s) AS at
    FROM generate_series(1, %(count)s) AS n
) AS made
"""
ATTEMPTS = """
INSERT INTO jobqueue_attempt (
    job_id, number, fence, worker, task, queue, outcome, charged, due_at, started_at, finished_at,
    error_class, error_message, error_fingerprint, traceback)
SELECT id, 1, 1, md5('worker' || abs(hashtext(id::text) %% 8))::uuid, task, queue,
       CASE WHEN state IN ('succeeded', 'cancelled') THEN state ELSE 'failed' END,
       state IN ('dead', 'retrying'), run_at, enqueued_at, enqueued_at + interval '1 second',
       error_class, error_message, error_fingerprint,
       CASE WHEN error_class > '' THEN repeat('  File "tasks.py", line 1, in f\n', 20) ELSE '' END
FROM jobqueue_job WHERE attempts > 0 ORDER BY id
"""
TAGS = """
INSERT INTO jobqueue_jobtag (job_id, tag)
SELECT id, 'order:' || row_number() OVER () / 3 FROM (
    SELECT id FROM jobqueue_job ORDER BY id DESC LIMIT %s) AS newest
"""
GROUPS = """
INSERT INTO jobqueue_errorgroup
    (fingerprint, error_class, message, count, first_seen, last_seen, job_id, task, queue)
SELECT error_fingerprint, max(error_class), 'no such order', count(*), now() - interval '6 days',
       now() - interval '1 minute', (array_agg(id ORDER BY id DESC))[1], max(task), max(queue)
FROM jobqueue_job WHERE state = 'dead' GROUP BY error_fingerprint
"""
WORKERS = """
INSERT INTO jobqueue_worker (
    id, kind, name, host, pid, backend, version, queues, tasks, slots, direct, started_at,
    heartbeat_at, lease_until, clock_ahead, draining, dead, dead_reason, blame)
SELECT md5('worker' || n)::uuid, 'worker', 'worker-' || n, 'app1', 100 + n, 'default', '1', '[]',
       '[]', 4, false, now(), now(), now() + interval '1 day', 0, false, false, '', 'jobs'
FROM generate_series(0, 7) AS n
"""


def fill(connection: Any, finished: int, live: int, attempts: bool = True) -> None:
    """Fill an empty database; it ends with the statistics that a planner needs."""
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
        for shares, count in ((FINISHED, finished), (LIVE, live)):
            for state, share in shares.items():
                cursor.execute(JOBS, values_of(state, max(int(count * share), 1)))
        if attempts:
            cursor.execute(ATTEMPTS, [])
        cursor.execute(TAGS, [min(finished // 10 + 1, 200_000)])
        for statement in (GROUPS, WORKERS):
            cursor.execute(statement)
        for table in ("job", "attempt", "jobtag", "errorgroup", "worker"):
            cursor.execute(f"ANALYZE jobqueue_{table}")


def values_of(state: str, count: int) -> dict[str, Any]:
    """Return what a state's INSERT is given."""
    is_old = state in OLDEST
    return {
        "state": state,
        "count": count,
        "from": DAYS + 1 if is_old else DAYS if state in FINISHED else 0.02,
        "days": 0.5 if is_old else DAYS if state in FINISHED else 0.02,
        "ran": int(state in FINISHED or state in ("running", "retrying")),
        "failed": int(state in ("dead", "retrying")),
        "ended": state in FINISHED,
    }
