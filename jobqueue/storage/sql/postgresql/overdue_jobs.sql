-- Running jobs well past their deadline. Caller: Storage.overdue (the reaper).
-- Index: jobqueue_job_running (the running set is small).
SELECT id, fence, worker, task, queue, backend, attempts, failures, max_attempts, suspicions,
       on_crash, alone, limit_key,
       (SELECT r.reason FROM jobqueue_cancelrequest AS r WHERE r.job_id = jobqueue_job.id)
FROM jobqueue_job
WHERE state = 'running'
  AND deadline < coalesce(%(now)s::timestamptz, statement_timestamp())
                 - make_interval(secs => %(slack)s::float8)
ORDER BY id LIMIT 1000
