-- The next queue that has jobs of a key in a state. Caller: Storage.admit_limited, jumping from one
-- to the next. Index: jobqueue_job_limit.
SELECT min(queue) FROM jobqueue_job
WHERE limit_key = %(key)s AND state = %(state)s AND queue > %(after)s
  AND state IN ('blocked', 'ready', 'running')
