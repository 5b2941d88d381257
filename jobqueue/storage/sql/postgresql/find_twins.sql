-- The jobs that hold these unique keys of a task, unlocked. Caller: Storage.find_twins (an enqueue
-- that met one). Index: jobqueue_job_unique, whose condition this repeats.
-- Columns: key, id, state, run_at, enqueued_at, whether it could have started a while ago, whether
-- it has ended and its window is over, whether it waits and its time to start has passed.
SELECT unique_key, id, state, run_at, enqueued_at,
       state IN ('ready', 'retrying', 'scheduled')
           AND run_at < c.now - make_interval(secs => %(patience)s::float8),
       state IN ('cancelled', 'dead', 'succeeded') AND unique_window_end <= c.now,
       state IN ('blocked', 'ready', 'retrying', 'scheduled') AND expires_at <= c.now
FROM jobqueue_job,
     (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE task = %(task)s AND unique_key = ANY(%(keys)s::text[]) AND unique_key IS NOT NULL
  AND (state IN ('blocked', 'ready', 'retrying', 'scheduled')
       OR (state = 'running' AND unique_until = 'done')
       OR unique_window_end IS NOT NULL)
