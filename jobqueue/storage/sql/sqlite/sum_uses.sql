-- How many jobs of a key started since a time, and when the oldest of them did.
-- Caller: Storage.read_rooms. Index: jobqueue_limituse_part.
SELECT coalesce(sum(used), 0), min(last_at) FROM jobqueue_limituse
WHERE key = %(key)s AND last_at > %(since)s
