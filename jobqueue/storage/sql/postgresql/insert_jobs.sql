-- Inserts a chunk of jobs in the caller's transaction. Callers: Storage.insert_jobs, insert_unique.
-- The clock is the statement's, never the transaction's start: a job enqueued late in a long
-- transaction is not overdue. rank: due time minus what the priority is worth, in microseconds.
-- {on_conflict}: for unique jobs, which come in the order of their keys: on conflict nothing.
WITH given AS MATERIALIZED (
    SELECT r.*,
           CASE WHEN r.delay IS NOT NULL THEN c.now + make_interval(secs => r.delay)
                ELSE coalesce(r.run_at, c.now) END AS due,
           c.now AS now
    FROM json_to_recordset(%(rows)s::json) AS r(
             n integer, id uuid, backend text, task text, queue text, priority smallint,
             arguments text, timeout float8, run_at timestamptz, delay float8,
             max_attempts integer, on_crash text, expires_at timestamptz, expires_in float8,
             unique_key text, unique_until text, unique_window float8, copied_from uuid,
             created_by text, trace_context text, limit_key text, schedule text, tick timestamptz,
             blocked text, aging float8),
         (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
)
INSERT INTO jobqueue_job AS j (
    id, backend, task, queue, priority, state, arguments, run_at, rank, enqueued_at, expires_at,
    max_attempts, attempts, failures, suspicions, alone, on_crash, timeout, fence,
    error_class, error_message, error_fingerprint, reason, unique_key, unique_until,
    unique_window_end, pending, has_children, schedule, tick, copied_from, created_by,
    trace_context, limit_key, version)
SELECT id, backend, task, queue, priority,
       CASE WHEN blocked > '' THEN 'blocked' WHEN due > now THEN 'scheduled' ELSE 'ready' END,
       arguments::json, due,
       (extract(epoch FROM greatest(due, now)) * 1000000)::bigint
           - (priority * aging * 1000000)::bigint,
       now, coalesce(expires_at, now + make_interval(secs => expires_in)),
       max_attempts, 0, 0, 0, false, on_crash, timeout, 0,
       '', '', '', coalesce(blocked, ''), unique_key, coalesce(unique_until, ''),
       now + make_interval(secs => unique_window), 0, false, coalesce(schedule, ''), tick,
       copied_from, created_by, trace_context::json, limit_key, 1
FROM given
ORDER BY n
{on_conflict}
RETURNING j.id, j.state, j.run_at, j.enqueued_at
