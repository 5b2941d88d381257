-- Makes jobs ready whose task a worker has registered again. Caller: Storage.admit_known.
-- Index: jobqueue_job_blocked.
UPDATE jobqueue_job AS j SET state = 'ready', reason = '', version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE state = 'blocked' AND reason = 'unknown task' AND task = ANY(%(tasks)s::text[])
          ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state = 'blocked'
RETURNING j.queue
