-- Deletes error groups that were not seen for long, and those beyond the newest ones.
-- Caller: Storage.prune_error_groups. Index: jobqueue_error_last_seen.
DELETE FROM jobqueue_errorgroup WHERE fingerprint IN (
    SELECT fingerprint FROM jobqueue_errorgroup
    WHERE last_seen < max(
        %(before)s,
        coalesce((SELECT last_seen FROM jobqueue_errorgroup ORDER BY last_seen DESC
                  LIMIT 1 OFFSET %(keep)s - 1), ''))
    ORDER BY last_seen LIMIT %(limit)s)
