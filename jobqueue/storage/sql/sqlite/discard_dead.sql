-- Gives dead letters up for good. Caller: Storage.discard_dead.
-- They end anew, so that their retention as cancelled jobs begins now.
UPDATE jobqueue_job
SET state = 'cancelled', finished_at = %(now)s, reason = %(reason)s, version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state = 'dead'
RETURNING id
