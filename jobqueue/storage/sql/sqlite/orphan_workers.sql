-- Identities that hold running jobs and were dead by a time, or have no row at all: a pruned row
-- hides nothing. Caller: Storage.orphan_workers (the reaper). Index: jobqueue_job_running.
SELECT DISTINCT j.worker, w.dead_reason, w.blame
FROM jobqueue_job j LEFT JOIN jobqueue_worker w ON w.id = j.worker
WHERE j.state = 'running' AND (w.id IS NULL OR w.dead AND w.dead_at <= %(before)s)
ORDER BY j.worker
