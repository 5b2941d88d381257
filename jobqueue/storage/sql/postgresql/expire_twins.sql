-- Cancels waiting jobs whose time to start has passed, so that they give up their unique keys.
-- Caller: Storage.expire_twins (an enqueue that met them before the sweep did). Index: primary key.
UPDATE jobqueue_job AS j
SET state = 'cancelled', finished_at = c.now, reason = 'expired', version = j.version + 1
FROM (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
          ORDER BY id FOR NO KEY UPDATE))
  AND j.state IN ('blocked', 'ready', 'retrying', 'scheduled') AND j.expires_at <= c.now
RETURNING j.id, j.backend, j.task
