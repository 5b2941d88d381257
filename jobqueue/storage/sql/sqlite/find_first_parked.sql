-- The first parked job of a key in one queue. Caller: Storage.claim_limited: nobody of the same key
-- may start before it. Index: jobqueue_job_limit.
SELECT rank, id FROM jobqueue_job
WHERE limit_key = %(key)s AND state = 'blocked' AND queue = %(queue)s AND reason = 'limit'
  AND state IN ('blocked', 'ready', 'running')
  AND NOT EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = %(queue)s AND p.paused)
ORDER BY rank, id LIMIT 1
