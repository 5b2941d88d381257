-- Jobs in each live state and in dead, as far as a limit; finished ones are never counted (there
-- may be millions). Caller: Storage.state_counts. Indexes: a partial one a state, each in its own
-- order, so that no plan reads the table in the hope of meeting enough of them soon.
WITH counted AS (
    (SELECT 'ready' AS state FROM jobqueue_job WHERE state = 'ready'
     ORDER BY queue, rank, id LIMIT %(limit)s)
    UNION ALL
    (SELECT 'running' AS state FROM jobqueue_job WHERE state = 'running'
     ORDER BY worker LIMIT %(limit)s)
    UNION ALL
    (SELECT 'blocked' AS state FROM jobqueue_job WHERE state = 'blocked'
     ORDER BY reason, task LIMIT %(limit)s)
    UNION ALL
    (SELECT 'dead' AS state FROM jobqueue_job WHERE state = 'dead'
     ORDER BY finished_at LIMIT %(limit)s)
    UNION ALL
    (SELECT state FROM jobqueue_job WHERE state IN ('retrying', 'scheduled')
     ORDER BY run_at, id LIMIT %(limit)s)
)
SELECT state, count(*) FROM counted GROUP BY state
