-- Deletes error groups that were not seen for long, and those beyond the newest ones.
-- Caller: Storage.prune_error_groups. Index: jobqueue_error_last_seen.
DELETE FROM jobqueue_errorgroup WHERE fingerprint = ANY(ARRAY(
    SELECT fingerprint FROM jobqueue_errorgroup
    WHERE last_seen < greatest(
        %(before)s::timestamptz,
        (SELECT last_seen FROM jobqueue_errorgroup ORDER BY last_seen DESC
         OFFSET %(keep)s - 1 LIMIT 1))
    ORDER BY last_seen LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING fingerprint
