-- Jobs whose succeeded attempts are not exactly one if the job succeeded, and none if it did not.
-- Caller: Storage.audit_rows. Reads both tables whole.
SELECT j.id AS job_id, j.state AS state, coalesce(s.successes, 0) AS successes
FROM jobqueue_job j
LEFT JOIN (SELECT job_id, count(*) AS successes FROM jobqueue_attempt
           WHERE outcome = 'succeeded' GROUP BY job_id) AS s ON s.job_id = j.id
WHERE coalesce(s.successes, 0) <> CASE WHEN j.state = 'succeeded' THEN 1 ELSE 0 END
ORDER BY j.id LIMIT %(limit)s
