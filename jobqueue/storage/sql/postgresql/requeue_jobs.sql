-- Gives ended jobs a new budget; history and number of attempts stay. Caller: Storage.requeue_many.
-- One whose time to start will have passed is to run all the same: it does not expire again.
-- dues: when each is due, NULL for at once. Locked rows are left and reported.
-- {unique}: leaves out jobs with a unique key, for which Storage.requeue_many makes way first.
UPDATE jobqueue_job AS j
SET state = CASE WHEN d.due > d.now THEN 'scheduled' ELSE 'ready' END,
    finished_at = NULL, failures = 0, suspicions = 0, alone = false, reason = '', run_at = d.due,
    expires_at = CASE WHEN j.expires_at > d.due THEN j.expires_at END,
    rank = (extract(epoch FROM d.due) * 1000000)::bigint
           - (j.priority * %(aging)s::float8 * 1000000)::bigint,
    version = j.version + 1
FROM (SELECT g.id, greatest(g.due, c.now) AS due, c.now
      FROM unnest(%(ids)s::uuid[], %(dues)s::timestamptz[]) AS g(id, due),
           (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c) AS d
WHERE j.id = d.id
  AND j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('dead', 'cancelled') {unique}
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('dead', 'cancelled')
RETURNING j.id
