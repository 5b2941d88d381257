-- Makes due jobs ready; their rank is already right. Caller: Storage.promote.
-- Index: jobqueue_job_due.
UPDATE jobqueue_job AS j SET state = 'ready', version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE state IN ('retrying', 'scheduled')
            AND run_at <= coalesce(%(now)s::timestamptz, statement_timestamp())
          ORDER BY run_at, id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('retrying', 'scheduled')
RETURNING j.queue
