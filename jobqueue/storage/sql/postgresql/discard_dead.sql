-- Gives dead letters up for good. Caller: Storage.discard_dead. Locked rows are left and reported.
-- They end anew, so that their retention as cancelled jobs begins now.
UPDATE jobqueue_job AS j
SET state = 'cancelled', finished_at = statement_timestamp(), reason = %(reason)s,
    version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[]) AND state = 'dead'
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state = 'dead'
RETURNING j.id
