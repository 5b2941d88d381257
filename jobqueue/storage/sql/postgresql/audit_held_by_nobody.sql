-- Jobs running under a worker that is dead, has no row, or has let its lease run out, and that
-- nobody has taken back since. Caller: Storage.audit_rows. Index: jobqueue_job_running.
WITH c AS (SELECT statement_timestamp() - make_interval(secs => %(patience)s) AS late),
held AS (
    SELECT j.id, j.worker,
           CASE WHEN w.id IS NULL THEN 'no row' WHEN w.dead THEN 'dead' ELSE 'no lease' END AS owner,
           CASE WHEN w.id IS NULL THEN j.claimed_at ELSE coalesce(w.dead_at, w.lease_until) END
               AS since
    FROM jobqueue_job j LEFT JOIN jobqueue_worker w ON w.id = j.worker
    WHERE j.state = 'running'
)
SELECT held.id AS job_id, held.worker, held.owner,
       (held.since AT TIME ZONE 'UTC')::text || ' UTC' AS since
FROM held, c WHERE held.since < c.late
ORDER BY held.id LIMIT %(limit)s
