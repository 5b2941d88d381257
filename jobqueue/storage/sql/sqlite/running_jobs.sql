-- The jobs running under some identities. Caller: Storage.running_of (reconcile, recovery).
-- Index: jobqueue_job_running.
SELECT id, fence, worker, task, queue, backend, attempts, failures, max_attempts, suspicions,
       on_crash, alone
FROM jobqueue_job
WHERE state = 'running' AND worker IN (SELECT value FROM json_each(%(workers)s))
ORDER BY id
