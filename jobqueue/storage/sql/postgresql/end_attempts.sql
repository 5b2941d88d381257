-- Leads running jobs to any other state than succeeded, with their attempt rows.
-- Caller: Storage.end_many (the worker's retry, bury, snooze, release; recovery's reap).
-- Every row carries its whole guard by value, also for a reaper: a dead worker is never judged by
-- a sub-select in the statement that changes the job (seen: a live worker robbed on re-check).
-- Waits for nobody: a row of another worker's may be locked for as long as that likes, and one that
-- is ours by an outsider. The whole guard stands where rows are locked, so that others are not.
-- {moving}: leaves out jobs that take a unique key again, for which Storage.end_many makes way first.
-- Index: primary key; why no other: see finish_one.sql.
WITH given AS MATERIALIZED (
    SELECT r.*, c.now
    FROM json_to_recordset(%(rows)s::json) AS r(
             id uuid, fence bigint, worker uuid, state text, outcome text, charged boolean,
             delay float8, started_ago float8, error_class text, error_message text,
             error_fingerprint text, traceback text, reason text, suspicion smallint,
             alone boolean, aging float8),
         (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
), locked AS MATERIALIZED (
    SELECT j.id, j.claimed_at, greatest(j.run_at, j.enqueued_at) AS due_at,
           j.unique_until = 'start' AND j.unique_window_end IS NULL
               AND g.state IN ('ready', 'retrying', 'scheduled') AS takes_key
    FROM jobqueue_job j JOIN given g ON g.id = j.id AND g.fence = j.fence AND g.worker = j.worker
    WHERE j.id = ANY(%(ids)s::uuid[]) AND j.state || '' = 'running'
    ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
), guarded AS (
    UPDATE jobqueue_job AS j
    SET state = g.state, worker = NULL, claimed_at = NULL, deadline = NULL,
        finished_at = CASE WHEN g.state IN ('dead', 'cancelled') THEN g.now END,
        attempts = j.attempts + (g.outcome IS NOT NULL)::int,
        failures = j.failures + g.charged::int,
        suspicions = j.suspicions + g.suspicion,
        alone = g.alone,
        run_at = CASE WHEN g.delay IS NULL THEN j.run_at
                      ELSE g.now + make_interval(secs => g.delay) END,
        rank = CASE WHEN g.delay IS NULL THEN j.rank
                    ELSE (extract(epoch FROM g.now + make_interval(secs => g.delay)) * 1000000)::bigint
                         - (j.priority * g.aging * 1000000)::bigint END,
        error_class = coalesce(g.error_class, j.error_class),
        error_message = coalesce(g.error_message, j.error_message),
        error_fingerprint = coalesce(g.error_fingerprint, j.error_fingerprint),
        reason = g.reason, version = j.version + 1
    FROM given g JOIN locked l ON l.id = g.id
    WHERE j.id = g.id AND j.state || '' = 'running' AND j.fence = g.fence AND j.worker = g.worker
      {moving}
    RETURNING j.id, j.fence, j.attempts, j.task, j.queue, l.claimed_at, l.due_at
), history AS (
    INSERT INTO jobqueue_attempt (job_id, number, fence, worker, task, queue, outcome, charged,
                                  due_at, started_at, finished_at, error_class, error_message,
                                  error_fingerprint, traceback)
    SELECT u.id, u.attempts, u.fence, g.worker, u.task, u.queue, g.outcome, g.charged,
           u.due_at, coalesce(g.now - make_interval(secs => g.started_ago), u.claimed_at), g.now,
           coalesce(g.error_class, ''), coalesce(g.error_message, ''),
           coalesce(g.error_fingerprint, ''), coalesce(g.traceback, '')
    FROM guarded u JOIN given g ON g.id = u.id
    WHERE g.outcome IS NOT NULL
)
SELECT g.id, g.fence, coalesce(l.takes_key, false)
FROM given g LEFT JOIN guarded u ON u.id = g.id LEFT JOIN locked l ON l.id = g.id
WHERE u.id IS NULL
