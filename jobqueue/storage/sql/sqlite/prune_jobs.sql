-- Deletes ended jobs that were found old, unless they have moved on. Caller: Storage.prune.
DELETE FROM jobqueue_job
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state IN ('succeeded', 'cancelled', 'dead')
  AND finished_at < %(before)s
RETURNING id, state
