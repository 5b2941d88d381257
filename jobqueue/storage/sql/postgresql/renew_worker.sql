-- Renews a lease. Caller: Storage.renew_worker (the beat). No row: this worker is dead.
-- Only columns without an index change, so the new version stays in the page (HOT).
UPDATE jobqueue_worker
SET heartbeat_at = statement_timestamp(),
    lease_until = statement_timestamp() + make_interval(secs => %(lease)s::float8),
    direct = %(direct)s,
    clock_ahead = %(clock)s::float8 - extract(epoch FROM statement_timestamp())::float8
WHERE id = %(id)s::uuid AND NOT dead
RETURNING draining
