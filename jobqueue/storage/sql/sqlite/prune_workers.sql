-- Deletes rows of workers dead for long that hold no job. Caller: Storage.prune_workers.
DELETE FROM jobqueue_worker
WHERE dead AND dead_at < %(before)s
  AND NOT EXISTS (SELECT 1 FROM jobqueue_job j
                  WHERE j.state = 'running' AND j.worker = jobqueue_worker.id)
RETURNING id
