-- The most urgent ready jobs of each queue as far as a limit: how many, and since when the oldest
-- of them has been due. Caller: Storage.queue_backlogs. Index: jobqueue_job_ready, one ordered scan
-- a queue.
WITH RECURSIVE names(queue) AS (
    SELECT min(queue) FROM jobqueue_job WHERE state = 'ready'
    UNION ALL
    SELECT (SELECT min(j.queue) FROM jobqueue_job j
            WHERE j.state = 'ready' AND j.queue > names.queue)
    FROM names WHERE names.queue IS NOT NULL
)
SELECT n.queue,
       (SELECT count(*) FROM (SELECT 1 FROM jobqueue_job WHERE state = 'ready' AND queue = n.queue
                              ORDER BY rank, id LIMIT %(limit)s)) AS ready,
       (SELECT min(run_at) FROM (SELECT run_at FROM jobqueue_job
                                 WHERE state = 'ready' AND queue = n.queue
                                 ORDER BY rank, id LIMIT %(limit)s))
FROM (SELECT queue FROM names WHERE queue IS NOT NULL LIMIT %(max_queues)s) AS n
