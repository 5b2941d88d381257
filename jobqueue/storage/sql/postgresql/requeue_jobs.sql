-- Gives ended jobs a new budget; history and number of attempts stay. Caller: Storage.requeue_many.
-- One whose time to start has passed is to run all the same: it does not expire again.
UPDATE jobqueue_job AS j
SET state = 'ready', finished_at = NULL, failures = 0, suspicions = 0, alone = false,
    reason = '', run_at = statement_timestamp(),
    expires_at = CASE WHEN j.expires_at > statement_timestamp() THEN j.expires_at END,
    rank = (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
           - (j.priority * %(aging)s::float8 * 1000000)::bigint,
    version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('dead', 'cancelled')
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('dead', 'cancelled')
RETURNING j.id, j.queue
