-- Deletes jobs that ended long ago, unless they have moved on. Caller: Storage.prune.
DELETE FROM jobqueue_job
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state = %(state)s
RETURNING id
