-- The best ready rows of one queue, within its claim window, those with a limit among them.
-- Caller: Storage.claim_beside_limited, under the write lock. Index: jobqueue_job_ready, in order.
SELECT rank, id, limit_key,
       EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = %(queue)s AND p.limited)
FROM (SELECT id, rank, task, alone, limit_key, expires_at FROM jobqueue_job
      WHERE state = 'ready' AND queue = %(queue)s AND (rank, id) > (%(rank)s, %(behind)s)
      ORDER BY rank, id LIMIT %(window)s)
WHERE task IN (SELECT value FROM json_each(%(tasks)s)) AND NOT alone
  AND (expires_at IS NULL
       OR expires_at > coalesce(%(now)s, strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now') || '000'))
  AND NOT EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = %(queue)s AND p.paused)
ORDER BY rank, id LIMIT %(limit)s
