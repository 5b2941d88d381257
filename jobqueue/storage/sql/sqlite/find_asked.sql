-- Waiting jobs that somebody asked to cancel while they ran. Caller: Storage.asked (a sweep).
-- CROSS JOIN keeps the order: the first table is nearly always empty.
SELECT j.id, j.backend, j.task, r.reason
FROM jobqueue_cancelrequest AS r CROSS JOIN jobqueue_job AS j
WHERE j.id = r.job_id AND j.state IN ('scheduled', 'ready', 'blocked', 'retrying')
ORDER BY r.job_id LIMIT %(limit)s
