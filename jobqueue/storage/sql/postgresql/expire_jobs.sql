-- Cancels waiting jobs whose time to start has passed. Caller: Storage.expire (the sweep).
-- Locked rows are left: the next sweep takes them, and no claim does. Index: jobqueue_job_expires.
UPDATE jobqueue_job AS j
SET state = 'cancelled', finished_at = c.now, reason = 'expired', version = j.version + 1
FROM (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE expires_at <= coalesce(%(now)s::timestamptz, statement_timestamp())
            AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
          ORDER BY expires_at, id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('blocked', 'ready', 'retrying', 'scheduled') AND j.expires_at <= c.now
RETURNING j.id, j.backend, j.task
