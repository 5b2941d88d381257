-- Deletes starts that can no longer count under any rate. Caller: Storage.prune_uses.
DELETE FROM jobqueue_limituse
WHERE last_at < statement_timestamp()
                - make_interval(secs => coalesce((SELECT max(per) FROM jobqueue_limit), 0))
RETURNING key
