-- Whether a suspect waits to run alone. Caller: Storage.alone_waiting (the supervisor).
-- Index: jobqueue_job_alone, read whole, for there are few: the plus keeps SQLite
-- from every ready job instead. Both ways to say alone: Django versions write the index differently.
SELECT count(*) FROM (
    SELECT 1 FROM jobqueue_job s
    WHERE s.state = 'ready' AND s.alone AND s.alone = 1
      AND +s.queue IN (SELECT value FROM json_each(%(queues)s))
      AND s.task IN (SELECT value FROM json_each(%(tasks)s))
      AND (s.expires_at IS NULL
           OR s.expires_at > strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now') || '000')
      AND NOT EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = s.queue AND p.paused)
    LIMIT 100)
