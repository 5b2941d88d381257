-- Whether any job is due, without a lock. Caller: Storage.promote. Index: jobqueue_job_due.
SELECT 1 FROM jobqueue_job
WHERE state IN ('retrying', 'scheduled') AND run_at <= %(now)s
LIMIT 1
