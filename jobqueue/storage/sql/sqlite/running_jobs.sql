-- The jobs running under some identities. Caller: Storage.running_of (reconcile, recovery).
-- Index: jobqueue_job_running.
SELECT id, fence, worker, task, queue, backend, attempts, failures, max_attempts, suspicions,
       on_crash, alone, limit_key,
       (SELECT r.reason FROM jobqueue_cancelrequest AS r WHERE r.job_id = jobqueue_job.id)
FROM jobqueue_job
WHERE state = 'running' AND worker IN (SELECT value FROM json_each(%(workers)s))
ORDER BY id
