-- Running jobs that would hold their unique keys again if they waited, and who holds them meanwhile.
-- Caller: Storage.end_many, before it leads them there. Indexes: primary key, jobqueue_job_unique.
-- Columns: id, backend, task, key, suspicions, the holder, whether it waits, whether it has ended
-- and its window is over, whether it waits and its time to start has passed; fence and worker, for
-- the guard.
SELECT m.id, m.backend, m.task, m.unique_key, m.suspicions, t.id,
       coalesce(t.state IN ('blocked', 'ready', 'retrying', 'scheduled'), 0),
       coalesce(t.state IN ('cancelled', 'dead', 'succeeded') AND t.unique_window_end <= %(now)s, 0),
       coalesce(t.state IN ('blocked', 'ready', 'retrying', 'scheduled') AND t.expires_at <= %(now)s, 0),
       m.fence, m.worker
FROM jobqueue_job m LEFT JOIN jobqueue_job t
    ON t.task = m.task AND t.unique_key = m.unique_key AND t.id <> m.id
   AND t.unique_key IS NOT NULL
   AND (t.state IN ('blocked', 'ready', 'retrying', 'scheduled')
        OR (t.state = 'running' AND t.unique_until = 'done')
        OR t.unique_window_end IS NOT NULL)
WHERE m.id IN (SELECT value FROM json_each(%(ids)s)) AND m.state = 'running'
  AND m.unique_until = 'start' AND m.unique_window_end IS NULL
ORDER BY m.id
