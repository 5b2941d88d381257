-- Blocks ready jobs of full keys, so that they stand in nobody's way. Caller: Storage.park_limited.
-- Index: primary key.
UPDATE jobqueue_job SET state = 'blocked', reason = 'limit', version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state = 'ready' AND limit_key IS NOT NULL
RETURNING limit_key
