-- The queues that hold a ready job, by jumping from one to the next in the index.
-- Caller: Storage.live_queues (a worker that serves every queue). Index: jobqueue_job_ready.
WITH RECURSIVE names(queue) AS (
    SELECT min(queue) FROM jobqueue_job WHERE state = 'ready'
    UNION ALL
    SELECT (SELECT min(j.queue) FROM jobqueue_job j
            WHERE j.state = 'ready' AND j.queue > names.queue)
    FROM names WHERE names.queue IS NOT NULL
)
SELECT queue FROM names WHERE queue IS NOT NULL
