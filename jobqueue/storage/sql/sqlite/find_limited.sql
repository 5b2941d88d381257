-- Ready jobs with a limit in one queue's claim window, without a lock.
-- Caller: Storage.find_limited. Index: jobqueue_job_ready, read in order.
SELECT rank, id, limit_key,
       EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = %(queue)s AND p.limited)
FROM (SELECT id, rank, task, alone, limit_key, expires_at FROM jobqueue_job
      WHERE state = 'ready' AND queue = %(queue)s AND (rank, id) > (%(rank)s, %(behind)s)
      ORDER BY rank, id LIMIT %(window)s)
WHERE task IN (SELECT value FROM json_each(%(tasks)s)) AND alone = %(alone)s
  AND (expires_at IS NULL
       OR expires_at > coalesce(%(now)s, strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now') || '000'))
  AND (limit_key IS NOT NULL
       OR EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = %(queue)s AND p.limited))
  AND NOT EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = %(queue)s AND p.paused)
ORDER BY rank, id LIMIT %(limit)s
