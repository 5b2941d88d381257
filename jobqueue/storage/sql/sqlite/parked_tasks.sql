-- The tasks of which a job is blocked because no worker knows them. Caller: Storage.parked_tasks
-- (a worker that may yet import them). Index: jobqueue_job_blocked, one entry read for each task,
-- however many jobs it has.
WITH RECURSIVE parked (task) AS (
    SELECT min(task) FROM jobqueue_job WHERE state = 'blocked' AND reason = 'unknown task'
    UNION ALL
    SELECT (SELECT min(j.task) FROM jobqueue_job j
            WHERE j.state = 'blocked' AND j.reason = 'unknown task' AND j.task > p.task)
    FROM parked p WHERE p.task IS NOT NULL
)
SELECT task FROM parked WHERE task IS NOT NULL LIMIT %(limit)s
