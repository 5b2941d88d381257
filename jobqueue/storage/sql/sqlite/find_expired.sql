-- Whether the time to start of any waiting job has passed, without a lock. Caller: Storage.expire.
-- Index: jobqueue_job_expires.
SELECT 1 FROM jobqueue_job
WHERE expires_at <= %(now)s AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
LIMIT 1
