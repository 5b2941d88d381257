-- Jobs of given tasks that are blocked because no worker knows them, as far as a limit.
-- Caller: Storage.parked_counts. Index: jobqueue_job_blocked.
SELECT t.value,
       (SELECT count(*) FROM (SELECT 1 FROM jobqueue_job
                              WHERE state = 'blocked' AND reason = 'unknown task' AND task = t.value
                              LIMIT %(limit)s))
FROM json_each(%(tasks)s) AS t
