-- Makes parked jobs ready, found under the same write lock. Caller: Storage.admit_limited.
-- Index: primary key; the plus keeps SQLite from reading every blocked job instead.
UPDATE jobqueue_job SET state = 'ready', reason = '', version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state = 'blocked' AND +reason = 'limit'
RETURNING limit_key, queue
