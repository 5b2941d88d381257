-- Cancels waiting jobs whose time to start has passed. Caller: Storage.expire (the sweep).
-- Index: jobqueue_job_expires.
UPDATE jobqueue_job
SET state = 'cancelled', finished_at = %(now)s, reason = 'expired', version = version + 1
WHERE id IN (SELECT id FROM jobqueue_job
             WHERE expires_at <= %(now)s AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
             ORDER BY expires_at, id LIMIT %(limit)s)
RETURNING id, backend, task
