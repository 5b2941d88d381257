-- The best ready rows of one queue, within its claim window. Caller: Storage.claim_many, first
-- without a lock to see whether there is any, then under the write lock.
-- Index: jobqueue_job_ready, read in order.
SELECT rank, id
FROM (SELECT id, rank, task, alone, limit_key, expires_at FROM jobqueue_job
      WHERE state = 'ready' AND queue = %(queue)s AND (rank, id) > (%(rank)s, %(behind)s)
      ORDER BY rank, id LIMIT %(window)s)
WHERE task IN (SELECT value FROM json_each(%(tasks)s)) AND NOT alone AND limit_key IS NULL
  AND (expires_at IS NULL
       OR expires_at > coalesce(%(now)s, strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now') || '000'))
  AND NOT EXISTS (SELECT 1 FROM jobqueue_queue p
                  WHERE p.name = %(queue)s AND (p.paused OR p.limited))
ORDER BY rank, id LIMIT %(limit)s
