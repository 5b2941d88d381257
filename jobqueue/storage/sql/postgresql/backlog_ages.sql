-- Seconds: how long the oldest ready job has waited, the oldest due job has not been promoted,
-- the oldest job of a dead worker has not been reaped. Caller: Storage.backlog_ages.
WITH c AS (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now)
SELECT extract(epoch FROM c.now - (SELECT min(run_at) FROM jobqueue_job WHERE state = 'ready'))::float8,
       extract(epoch FROM c.now - (SELECT min(run_at) FROM jobqueue_job
                                   WHERE state IN ('retrying', 'scheduled') AND run_at < c.now))::float8,
       (SELECT max(extract(epoch FROM c.now - coalesce(w.dead_at, w.lease_until, j.claimed_at)))::float8
        FROM jobqueue_job j LEFT JOIN jobqueue_worker w ON w.id = j.worker
        WHERE j.state = 'running' AND (w.id IS NULL OR w.dead OR w.lease_until < c.now))
FROM c
