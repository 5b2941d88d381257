-- Seconds: how long the oldest due job has not been promoted, and the oldest job of a dead worker
-- has not been taken back. Caller: Storage.backlog_ages.
-- Indexes: jobqueue_job_due, jobqueue_job_running.
WITH c AS (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now)
SELECT extract(epoch FROM c.now - (SELECT min(run_at) FROM jobqueue_job
                                   WHERE state IN ('retrying', 'scheduled')
                                     AND run_at < c.now))::float8,
       (SELECT max(extract(epoch FROM c.now - coalesce(w.dead_at, w.lease_until, j.claimed_at)))
        FROM jobqueue_job j LEFT JOIN jobqueue_worker w ON w.id = j.worker
        WHERE j.state = 'running' AND (w.id IS NULL OR w.dead OR w.lease_until < c.now))::float8
FROM c
