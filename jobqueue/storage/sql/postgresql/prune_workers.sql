-- Deletes rows of workers dead for long that hold no job. Caller: Storage.prune_workers.
DELETE FROM jobqueue_worker w
WHERE w.dead AND w.dead_at < statement_timestamp() - make_interval(secs => %(age)s::float8)
  AND NOT EXISTS (SELECT FROM jobqueue_job j WHERE j.state = 'running' AND j.worker = w.id)
RETURNING w.id
