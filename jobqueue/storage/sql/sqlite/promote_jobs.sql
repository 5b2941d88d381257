-- Makes due jobs ready; their rank is already right. Caller: Storage.promote.
-- Index: jobqueue_job_due.
UPDATE jobqueue_job SET state = 'ready', version = version + 1
WHERE id IN (SELECT id FROM jobqueue_job
             WHERE state IN ('retrying', 'scheduled') AND run_at <= %(now)s
             ORDER BY run_at, id LIMIT %(limit)s)
RETURNING queue
