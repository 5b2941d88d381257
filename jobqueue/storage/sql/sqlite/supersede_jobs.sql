-- Ends jobs because another of the same unique key lives. Callers: Storage.end_many (waiting ones,
-- which give way to a newer), requeue_many (also those that do not wait again). Index: primary key.
UPDATE jobqueue_job
SET state = 'cancelled', reason = 'superseded', version = version + 1,
    finished_at = coalesce(finished_at, %(now)s)
WHERE id IN (SELECT value FROM json_each(%(ids)s))
  AND state IN ('blocked', 'cancelled', 'dead', 'ready', 'retrying', 'scheduled')
RETURNING id, backend, task
