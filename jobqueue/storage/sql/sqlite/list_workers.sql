-- The workers that are not dead. Caller: Storage.workers (the reaper).
SELECT id, kind, supervisor, direct, lease_until, heartbeat_at
FROM jobqueue_worker WHERE NOT dead ORDER BY id
