-- Jobs that have left attempts but no row: pruning takes both. Caller: Storage.audit_rows.
-- Reads the attempts whole. Index: primary key of the job.
SELECT a.job_id AS job_id, count(*) AS attempts, min(a.task) AS task
FROM jobqueue_attempt a
WHERE NOT EXISTS (SELECT 1 FROM jobqueue_job j WHERE j.id = a.job_id)
GROUP BY a.job_id ORDER BY a.job_id LIMIT %(limit)s
