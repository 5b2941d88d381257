-- Jobs running under a worker that is dead or has no row, and that nobody has taken back since. A
-- worker that does not beat is alive here, as long as its process is. Caller: Storage.audit_rows.
-- Index: jobqueue_job_running.
SELECT j.id AS job_id, j.worker AS worker,
       CASE WHEN w.id IS NULL THEN 'no row' ELSE 'dead' END AS owner,
       coalesce(w.dead_at, j.claimed_at) || ' UTC' AS since
FROM jobqueue_job j LEFT JOIN jobqueue_worker w ON w.id = j.worker
WHERE j.state = 'running' AND (w.id IS NULL OR w.dead)
  AND coalesce(w.dead_at, j.claimed_at) < %(late)s
ORDER BY j.id LIMIT %(limit)s
