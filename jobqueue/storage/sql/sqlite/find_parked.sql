-- Jobs blocked for an unknown task that is known again, without a lock.
-- Caller: Storage.admit_known. Index: jobqueue_job_blocked.
SELECT id FROM jobqueue_job
WHERE state = 'blocked' AND reason = 'unknown task'
  AND task IN (SELECT value FROM json_each(%(tasks)s))
ORDER BY id LIMIT %(limit)s
