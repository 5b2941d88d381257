-- How many jobs of a key run. Caller: Storage.read_rooms.
-- Index: jobqueue_job_limit, whose own condition is repeated: SQLite looks for its words.
SELECT count(*) FROM jobqueue_job
WHERE limit_key = %(key)s AND state = 'running' AND state IN ('blocked', 'ready', 'running')
