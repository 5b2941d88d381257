-- Keys of parked jobs behind a given key, in order, by jumping from one to the next.
-- Caller: Storage.parked_keys (the sweep). Index: jobqueue_job_limit.
WITH RECURSIVE found AS (
    (SELECT limit_key FROM jobqueue_job
     WHERE limit_key > %(after)s AND state = 'blocked' AND reason = 'limit'
     ORDER BY limit_key LIMIT 1)
    UNION ALL
    SELECT (SELECT j.limit_key FROM jobqueue_job j
            WHERE j.limit_key > found.limit_key AND j.state = 'blocked' AND j.reason = 'limit'
            ORDER BY j.limit_key LIMIT 1)
    FROM found WHERE found.limit_key IS NOT NULL
)
SELECT limit_key FROM found WHERE limit_key IS NOT NULL LIMIT %(limit)s
