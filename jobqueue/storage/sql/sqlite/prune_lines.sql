-- Deletes the log lines of pruned jobs, in the same transaction. Caller: Storage.prune.
DELETE FROM jobqueue_logline WHERE job_id IN (SELECT value FROM json_each(%(ids)s))
