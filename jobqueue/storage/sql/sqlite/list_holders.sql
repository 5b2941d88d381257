-- Who holds running jobs, whether its row says dead (or is missing), and the last that was seen
-- of it. Caller: Storage.backlog_ages. Index: jobqueue_job_running.
SELECT j.worker, w.id IS NULL OR w.dead, min(coalesce(w.dead_at, w.lease_until, j.claimed_at))
FROM jobqueue_job j LEFT JOIN jobqueue_worker w ON w.id = j.worker
WHERE j.state = 'running'
GROUP BY j.worker, w.id, w.dead
