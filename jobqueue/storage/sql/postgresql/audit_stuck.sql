-- Jobs that something should have moved on long ago: running past their deadline and what the
-- reaper is given, or due and not promoted. Caller: Storage.audit_rows.
-- Indexes: jobqueue_job_running, jobqueue_job_due.
WITH c AS (SELECT statement_timestamp() - make_interval(secs => %(patience)s) AS late)
SELECT id AS job_id, state, 'past its deadline' AS what,
       (deadline AT TIME ZONE 'UTC')::text || ' UTC' AS since
FROM jobqueue_job, c
WHERE state = 'running' AND deadline < c.late - make_interval(secs => %(slack)s)
UNION ALL
SELECT id, state, 'due but not promoted', (run_at AT TIME ZONE 'UTC')::text || ' UTC'
FROM jobqueue_job, c
WHERE state IN ('retrying', 'scheduled') AND run_at < c.late
ORDER BY job_id LIMIT %(limit)s
