-- The next key that parked jobs have. Caller: Storage.parked_keys (the sweep), jumping from one to
-- the next. Index: jobqueue_job_limit; the plus keeps SQLite from reading every blocked job instead.
SELECT limit_key FROM jobqueue_job
WHERE limit_key > %(after)s AND state = 'blocked' AND +reason = 'limit'
  AND state IN ('blocked', 'ready', 'running')
ORDER BY limit_key LIMIT 1
