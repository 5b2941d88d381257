-- Waiting jobs that somebody asked to cancel while they ran. Caller: Storage.asked (a sweep).
-- The table is nearly always empty; the LIMIT keeps each of its rows looking its job up by primary
-- key, whatever the planner thinks of its size.
SELECT j.id, j.backend, j.task, r.reason
FROM jobqueue_cancelrequest AS r
CROSS JOIN LATERAL (SELECT id, backend, task, state FROM jobqueue_job WHERE id = r.job_id LIMIT 1) AS j
WHERE j.state IN ('scheduled', 'ready', 'blocked', 'retrying')
ORDER BY j.id LIMIT %(limit)s
