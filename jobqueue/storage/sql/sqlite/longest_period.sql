-- The longest period of any rate, in seconds. Caller: Storage.prune_uses.
SELECT coalesce(max(per), 0) FROM jobqueue_limit
