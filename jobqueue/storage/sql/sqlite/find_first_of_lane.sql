-- The first jobs of a key in one queue and state, nothing of a paused queue.
-- Caller: Storage.admit_limited. Index: jobqueue_job_limit, read in order.
SELECT rank, id, state FROM jobqueue_job
WHERE limit_key = %(key)s AND state = %(state)s AND queue = %(queue)s
  AND state IN ('blocked', 'ready', 'running') AND (state = 'ready' OR reason = 'limit')
  AND NOT EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = %(queue)s AND p.paused)
ORDER BY rank, id LIMIT %(limit)s
