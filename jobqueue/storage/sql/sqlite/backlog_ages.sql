-- Since when the oldest due job has not been promoted. Caller: Storage.backlog_ages.
-- Index: jobqueue_job_due.
SELECT min(run_at) FROM jobqueue_job
WHERE state IN ('retrying', 'scheduled') AND run_at < %(now)s
