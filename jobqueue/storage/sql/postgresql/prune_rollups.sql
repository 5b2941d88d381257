-- Deletes a small batch of old rollups. Caller: Storage.prune_rollups. Index: jobqueue_rollup_key.
DELETE FROM jobqueue_rollup WHERE id = ANY(ARRAY(
    SELECT id FROM jobqueue_rollup
    WHERE seconds = %(seconds)s AND kind IN ('task', 'worker', 'error') AND at < %(before)s
    LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING id
