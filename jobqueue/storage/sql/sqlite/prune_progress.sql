-- Deletes the progress of pruned jobs, in the same transaction. Caller: Storage.prune.
DELETE FROM jobqueue_progress WHERE job_id IN (SELECT value FROM json_each(%(ids)s))
