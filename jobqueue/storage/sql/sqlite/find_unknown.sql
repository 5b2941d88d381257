-- Ready jobs of unknown tasks in one queue's claim window, without a lock.
-- Caller: Storage.park_unknown (the sweep). Index: jobqueue_job_ready.
SELECT id FROM (SELECT id, task FROM jobqueue_job
                WHERE state = 'ready' AND queue = %(queue)s
                ORDER BY rank, id LIMIT %(window)s)
WHERE task NOT IN (SELECT value FROM json_each(%(tasks)s))
LIMIT %(limit)s
