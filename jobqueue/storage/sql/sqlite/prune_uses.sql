-- Deletes starts that can no longer count under any rate. Caller: Storage.prune_uses.
DELETE FROM jobqueue_limituse WHERE last_at < %(until)s
