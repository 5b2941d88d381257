-- Ended jobs that have a unique key, and who holds it meanwhile. Caller: Storage.requeue_many,
-- before they wait again. Indexes: primary key, jobqueue_job_unique. Columns: see find_movers.sql.
SELECT m.id, m.backend, m.task, m.unique_key, m.suspicions, t.id,
       coalesce(t.state IN ('blocked', 'ready', 'retrying', 'scheduled'), 0),
       coalesce(t.state IN ('cancelled', 'dead', 'succeeded') AND t.unique_window_end <= %(now)s, 0),
       coalesce(t.state IN ('blocked', 'ready', 'retrying', 'scheduled') AND t.expires_at <= %(now)s, 0)
FROM jobqueue_job m LEFT JOIN jobqueue_job t
    ON t.task = m.task AND t.unique_key = m.unique_key AND t.id <> m.id
   AND t.unique_key IS NOT NULL
   AND (t.state IN ('blocked', 'ready', 'retrying', 'scheduled')
        OR (t.state = 'running' AND t.unique_until = 'done')
        OR t.unique_window_end IS NOT NULL)
WHERE m.id IN (SELECT value FROM json_each(%(ids)s)) AND m.state IN ('dead', 'cancelled')
  AND m.unique_key IS NOT NULL
ORDER BY m.id
