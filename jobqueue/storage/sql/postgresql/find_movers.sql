-- Locks running jobs that would hold their unique keys again if they waited, and finds who holds
-- them meanwhile. Caller: Storage.end_many, before it leads them there. The whole guard, by value,
-- so that nobody gives way to a zombie. Indexes: primary key, jobqueue_job_unique.
-- Columns: id, backend, task, key, suspicions, the holder, whether it waits, whether it has ended
-- and its window is over, whether it waits and its time to start has passed.
WITH c AS (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now),
movers AS MATERIALIZED (
    SELECT j.id, j.backend, j.task, j.unique_key, j.suspicions
    FROM jobqueue_job j
    JOIN json_to_recordset(%(rows)s::json) AS g(id uuid, fence bigint, worker uuid)
        ON g.id = j.id AND g.fence = j.fence AND g.worker = j.worker
    WHERE j.id = ANY(%(ids)s::uuid[]) AND j.state || '' = 'running'
    ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
)
SELECT m.id, m.backend, m.task, m.unique_key, m.suspicions, twin.id,
       coalesce(twin.waits, false), coalesce(twin.has_lapsed, false),
       coalesce(twin.has_expired, false)
FROM c CROSS JOIN movers m LEFT JOIN LATERAL (
    SELECT t.id, t.state IN ('blocked', 'ready', 'retrying', 'scheduled') AS waits,
           t.state IN ('cancelled', 'dead', 'succeeded') AND t.unique_window_end <= c.now AS has_lapsed,
           t.state IN ('blocked', 'ready', 'retrying', 'scheduled') AND t.expires_at <= c.now AS has_expired
    FROM jobqueue_job t
    WHERE t.task = m.task AND t.unique_key = m.unique_key AND t.id <> m.id
      AND t.unique_key IS NOT NULL
      AND (t.state IN ('blocked', 'ready', 'retrying', 'scheduled')
           OR (t.state = 'running' AND t.unique_until = 'done')
           OR t.unique_window_end IS NOT NULL)
    LIMIT 1
) AS twin ON true
ORDER BY m.id
