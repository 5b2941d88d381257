-- The workers that are not dead. Caller: Storage.workers (the reaper).
SELECT id, kind, supervisor, direct,
       extract(epoch FROM lease_until - c.now)::float8,
       extract(epoch FROM c.now - heartbeat_at)::float8,
       heartbeat_at < pg_postmaster_start_time()
FROM jobqueue_worker,
     (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE NOT dead
ORDER BY id
