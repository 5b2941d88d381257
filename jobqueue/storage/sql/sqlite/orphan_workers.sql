-- Identities that hold running jobs and were dead by a time, or have no row at all: a pruned row
-- hides nothing. Caller: Storage.orphan_workers (the reaper). Index: jobqueue_job_running.
SELECT DISTINCT j.worker FROM jobqueue_job j
WHERE j.state = 'running'
  AND NOT EXISTS (SELECT 1 FROM jobqueue_worker w
                  WHERE w.id = j.worker AND (NOT w.dead OR w.dead_at > %(before)s))
ORDER BY j.worker
