-- Cancels waiting jobs whose time to start has passed, so that they give up their unique keys.
-- Caller: Storage.expire_twins (an enqueue that met them before the sweep did). Index: primary key.
UPDATE jobqueue_job
SET state = 'cancelled', finished_at = %(now)s, reason = 'expired', version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s))
  AND state IN ('blocked', 'ready', 'retrying', 'scheduled') AND expires_at <= %(now)s
RETURNING id, backend, task
