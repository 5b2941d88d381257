-- How many jobs of a queue run. Caller: Storage.read_rooms.
-- Index: jobqueue_job_running, read whole (the running set is small).
SELECT count(*) FROM jobqueue_job WHERE state = 'running' AND +queue = %(queue)s
