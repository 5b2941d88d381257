-- The jobs that hold these unique keys of a task. Caller: Storage.find_twins (an enqueue that may
-- meet one). Index: jobqueue_job_unique, whose condition this repeats.
-- Columns: key, id, state, run_at, enqueued_at, whether it could have started a while ago, whether
-- it has ended and its window is over, whether it waits and its time to start has passed.
SELECT unique_key, id, state, run_at, enqueued_at,
       state IN ('ready', 'retrying', 'scheduled') AND run_at < %(overdue)s,
       state IN ('cancelled', 'dead', 'succeeded') AND unique_window_end IS NOT NULL AND unique_window_end <= %(now)s,
       state IN ('blocked', 'ready', 'retrying', 'scheduled') AND expires_at IS NOT NULL AND expires_at <= %(now)s
FROM jobqueue_job
WHERE task = %(task)s AND unique_key IN (SELECT value FROM json_each(%(keys)s))
  AND unique_key IS NOT NULL
  AND (state IN ('blocked', 'ready', 'retrying', 'scheduled')
       OR (state = 'running' AND unique_until = 'done')
       OR unique_window_end IS NOT NULL)
