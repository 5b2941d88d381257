-- The first suspect that must run alone. Caller: Storage.claim_alone (a one-slot process).
-- Index: jobqueue_job_alone, read whole, for there are few: the plus keeps SQLite
-- from every ready job instead. Both ways to say alone: Django versions write the index differently.
SELECT s.id FROM jobqueue_job s
WHERE s.state = 'ready' AND s.alone AND s.alone = 1
  AND +s.queue IN (SELECT value FROM json_each(%(queues)s))
  AND s.task IN (SELECT value FROM json_each(%(tasks)s))
  AND NOT EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = s.queue AND p.paused)
ORDER BY s.rank, s.id LIMIT 1
