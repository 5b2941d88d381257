-- Cancels waiting jobs. Caller: Storage.cancel_waiting.
UPDATE jobqueue_job
SET state = 'cancelled', finished_at = %(now)s, reason = %(reason)s, version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s))
  AND state IN ('scheduled', 'ready', 'blocked', 'retrying')
RETURNING id
