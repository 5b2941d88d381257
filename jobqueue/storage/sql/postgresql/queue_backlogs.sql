-- The most urgent ready jobs of each queue as far as a limit: how many, and since when the oldest
-- of them has been due. Caller: Storage.queue_backlogs. Index: jobqueue_job_ready, one ordered scan
-- a queue.
WITH RECURSIVE names AS (
    (SELECT queue FROM jobqueue_job WHERE state = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue FROM jobqueue_job j
            WHERE j.state = 'ready' AND j.queue > names.queue ORDER BY j.queue LIMIT 1)
    FROM names WHERE names.queue IS NOT NULL
)
SELECT n.queue, b.ready, extract(epoch FROM c.now - b.oldest)::float8
FROM (SELECT queue FROM names WHERE queue IS NOT NULL LIMIT %(max_queues)s) AS n
CROSS JOIN LATERAL (
    SELECT count(*) AS ready, min(run_at) AS oldest
    FROM (SELECT run_at FROM jobqueue_job WHERE state = 'ready' AND queue = n.queue
          ORDER BY rank, id LIMIT %(limit)s) AS head
) AS b
CROSS JOIN (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE b.ready > 0
