-- The first suspect that must run alone and has no limit. Caller: Storage.claim_alone (a one-slot process).
-- Index: jobqueue_job_alone, read whole, for there are few: the plus keeps SQLite
-- from every ready job instead. Both ways to say alone: Django versions write the index differently.
SELECT s.id FROM jobqueue_job s
WHERE s.state = 'ready' AND s.alone AND s.alone = 1 AND s.limit_key IS NULL
  AND +s.queue IN (SELECT value FROM json_each(%(queues)s))
  AND s.task IN (SELECT value FROM json_each(%(tasks)s))
  AND (s.expires_at IS NULL
       OR s.expires_at > coalesce(%(now)s, strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now') || '000'))
  AND NOT EXISTS (SELECT 1 FROM jobqueue_queue p
                  WHERE p.name = s.queue AND (p.paused OR p.limited))
ORDER BY s.rank, s.id LIMIT 1
