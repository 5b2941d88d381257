-- Declares a worker dead if its lease has run out: one compare-and-set on its own row.
-- Caller: Storage.mark_expired (the reaper).
UPDATE jobqueue_worker
SET dead = true, dead_at = statement_timestamp(), dead_reason = 'lease expired',
    blame = %(blame)s
WHERE id = %(id)s::uuid AND NOT dead
  AND lease_until < coalesce(%(now)s::timestamptz, statement_timestamp())
RETURNING id
