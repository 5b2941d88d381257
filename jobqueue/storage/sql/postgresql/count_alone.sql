-- Whether a suspect waits to run alone. Caller: Storage.alone_waiting (the supervisor).
-- Index: jobqueue_job_alone.
SELECT count(*) FROM (
    SELECT 1 FROM jobqueue_job s
    WHERE s.state = 'ready' AND s.alone AND s.queue = ANY(%(queues)s::text[])
      AND s.task = ANY(%(tasks)s::text[])
      AND (s.expires_at IS NULL OR s.expires_at > statement_timestamp())
      AND NOT EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = s.queue AND p.paused)
    LIMIT 100) AS waiting
