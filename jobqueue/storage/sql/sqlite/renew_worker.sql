-- Renews a lease. Caller: Storage.renew_worker (the beat). No row: this worker is dead.
UPDATE jobqueue_worker
SET heartbeat_at = %(now)s, lease_until = %(lease_until)s, direct = %(direct)s
WHERE id = %(id)s AND NOT dead
RETURNING draining
