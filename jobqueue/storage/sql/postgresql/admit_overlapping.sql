-- Lets jobs go on that waited for earlier ones of their schedule. Caller: Storage.admit_overlapping
-- (every scheduler). Of each schedule the first that waits, once nothing else of it lives: a second
-- sweep at the same time sees the first one still waiting, and passes the next one over.
-- Indexes: jobqueue_job_blocked, jobqueue_job_schedule.
UPDATE jobqueue_job AS j
SET state = CASE WHEN j.run_at > coalesce(%(now)s::timestamptz, statement_timestamp())
                 THEN 'scheduled' ELSE 'ready' END,
    reason = '', version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT w.id FROM jobqueue_job AS w
          WHERE w.state = 'blocked' AND w.reason = 'overlap'
            AND NOT EXISTS (
                SELECT 1 FROM jobqueue_job AS o
                WHERE o.schedule = w.schedule AND o.schedule > '' AND o.id <> w.id
                  AND o.state IN ('blocked', 'ready', 'retrying', 'running', 'scheduled')
                  AND (o.state <> 'blocked' OR o.reason <> 'overlap'
                       OR (o.enqueued_at, o.id) < (w.enqueued_at, w.id)))
          ORDER BY w.id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state = 'blocked' AND j.reason = 'overlap'
RETURNING j.queue
