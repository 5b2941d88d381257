-- Deletes starts of a key that no longer count. Caller: Storage.claim_limited.
-- Index: jobqueue_limituse_part.
DELETE FROM jobqueue_limituse WHERE key = %(key)s AND last_at <= %(until)s
