-- Blocked jobs by reason, as far as a limit. Caller: Storage.blocked_counts.
-- Index: jobqueue_job_blocked, by jumping from one reason to the next.
WITH RECURSIVE reasons(reason) AS (
    SELECT min(reason) FROM jobqueue_job WHERE state = 'blocked'
    UNION ALL
    SELECT (SELECT min(j.reason) FROM jobqueue_job j
            WHERE j.state = 'blocked' AND j.reason > r.reason)
    FROM reasons r WHERE r.reason IS NOT NULL
)
SELECT r.reason,
       (SELECT count(*) FROM (SELECT 1 FROM jobqueue_job
                              WHERE state = 'blocked' AND reason = r.reason
                              ORDER BY task LIMIT %(limit)s))
FROM (SELECT reason FROM reasons WHERE reason IS NOT NULL LIMIT 100) AS r
