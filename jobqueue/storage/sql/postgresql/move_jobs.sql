-- Puts waiting jobs into another queue; they keep their rank. Caller: Storage.move_many.
-- Locked rows are left and reported.
UPDATE jobqueue_job AS j SET queue = %(queue)s, version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[])
            AND state IN ('scheduled', 'ready', 'blocked', 'retrying')
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('scheduled', 'ready', 'blocked', 'retrying')
RETURNING j.id
