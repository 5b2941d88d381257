-- Locks ended jobs that have a unique key, and finds who holds it meanwhile.
-- Caller: Storage.requeue_many, before they wait again. Indexes: primary key, jobqueue_job_unique.
-- Columns: as in find_movers.sql.
WITH c AS (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now),
movers AS MATERIALIZED (
    SELECT id, backend, task, unique_key, suspicions FROM jobqueue_job
    WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('dead', 'cancelled') AND unique_key IS NOT NULL
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
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
