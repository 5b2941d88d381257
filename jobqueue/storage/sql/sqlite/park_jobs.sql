-- Blocks ready jobs whose task no live worker knows. Caller: Storage.park_unknown.
UPDATE jobqueue_job SET state = 'blocked', reason = 'unknown task', version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state = 'ready'
RETURNING task
