-- Jobs that something should have moved on long ago: running past their deadline and what the
-- reaper is given, or due and not promoted. Caller: Storage.audit_rows.
-- Indexes: jobqueue_job_running, jobqueue_job_due.
SELECT id AS job_id, state AS state, 'past its deadline' AS what, deadline || ' UTC' AS since
FROM jobqueue_job
WHERE state = 'running' AND deadline < %(overdue)s
UNION ALL
SELECT id, state, 'due but not promoted', run_at || ' UTC'
FROM jobqueue_job
WHERE state IN ('retrying', 'scheduled') AND run_at < %(late)s
ORDER BY job_id LIMIT %(limit)s
