-- Ends jobs because another of the same unique key lives. Callers: Storage.end_many (waiting ones,
-- which give way to a newer), requeue_many (also those that do not wait again).
-- Locked rows are left. Index: primary key.
UPDATE jobqueue_job AS j
SET state = 'cancelled', reason = 'superseded', version = j.version + 1,
    finished_at = coalesce(j.finished_at, %(now)s::timestamptz, statement_timestamp())
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[])
            AND state IN ('blocked', 'cancelled', 'dead', 'ready', 'retrying', 'scheduled')
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('blocked', 'cancelled', 'dead', 'ready', 'retrying', 'scheduled')
RETURNING j.id, j.backend, j.task
