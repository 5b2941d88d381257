-- Declares a worker dead whatever its lease says: its process has ended.
-- Caller: Storage.mark_dead (the supervisor after waitpid, the reaper on a missing life lock,
-- a clean stop).
UPDATE jobqueue_worker SET dead = true, dead_at = statement_timestamp(), dead_reason = %(reason)s,
    blame = %(blame)s
WHERE id = %(id)s::uuid AND NOT dead
RETURNING id
