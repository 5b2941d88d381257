-- Blocks ready jobs of tasks that no live worker knows. Caller: Storage.park_unknown (the sweep).
-- Only the claim window of each queue is looked at: that is where they stand in the way, and the
-- next sweep sees the rows behind them. Index: jobqueue_job_ready.
WITH RECURSIVE names AS (
    (SELECT queue FROM jobqueue_job WHERE state = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue FROM jobqueue_job j
            WHERE j.state = 'ready' AND j.queue > names.queue ORDER BY j.queue LIMIT 1)
    FROM names WHERE names.queue IS NOT NULL
), unknown AS MATERIALIZED (
    SELECT w.id FROM names CROSS JOIN LATERAL (
        SELECT id, task FROM jobqueue_job
        WHERE state = 'ready' AND queue = names.queue ORDER BY rank, id LIMIT %(window)s) AS w
    WHERE NOT (w.task = ANY(%(tasks)s::text[])) LIMIT %(limit)s
)
UPDATE jobqueue_job AS j SET state = 'blocked', reason = 'unknown task', version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(ARRAY(SELECT id FROM unknown)) AND state = 'ready'
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state = 'ready'
RETURNING j.task
