-- Cancels waiting jobs. Caller: Storage.cancel_waiting. Locked rows are left and reported.
UPDATE jobqueue_job AS j
SET state = 'cancelled', finished_at = statement_timestamp(), reason = %(reason)s,
    version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[])
            AND state IN ('scheduled', 'ready', 'blocked', 'retrying')
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('scheduled', 'ready', 'blocked', 'retrying')
RETURNING j.id
