-- Jobs of given tasks that are blocked because no worker knows them, as far as a limit.
-- Caller: Storage.parked_counts. Index: jobqueue_job_blocked.
SELECT t.task, b.jobs
FROM unnest(%(tasks)s::text[]) AS t(task)
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (SELECT FROM jobqueue_job
          WHERE state = 'blocked' AND reason = 'unknown task' AND task = t.task
          LIMIT %(limit)s) AS head
) AS b
