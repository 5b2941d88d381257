-- Blocks ready jobs of full keys, so that they stand in nobody's way. Caller: Storage.park_limited,
-- which needs no lock: whoever parks looks once more afterwards whether there is room.
-- Index: primary key.
UPDATE jobqueue_job AS j SET state = 'blocked', reason = 'limit', version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[]) AND state = 'ready' AND limit_key IS NOT NULL
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state = 'ready'
RETURNING j.limit_key
