-- Gives waiting jobs another due time. Caller: Storage.reschedule_many. Locked rows are left.
-- What a blocked job waits for is looked at again when it is due; until then it need not be
-- blocked. Parents, and earlier jobs of its schedule, that have not ended keep it blocked in any case.
-- One that would expire before it is due does not expire at all.
UPDATE jobqueue_job AS j
SET state = CASE WHEN j.state = 'blocked' AND (d.due = d.now OR j.pending > 0 OR j.reason = 'overlap')
                      THEN 'blocked'
                 WHEN d.due = d.now THEN 'ready'
                 WHEN j.state = 'retrying' THEN 'retrying'
                 ELSE 'scheduled' END,
    reason = CASE WHEN j.state = 'blocked' AND d.due > d.now AND j.pending = 0
                       AND j.reason <> 'overlap' THEN '' ELSE j.reason END,
    run_at = d.due, expires_at = CASE WHEN j.expires_at > d.due THEN j.expires_at END,
    rank = (extract(epoch FROM d.due) * 1000000)::bigint
           - (j.priority * %(aging)s::float8 * 1000000)::bigint,
    version = j.version + 1
FROM (SELECT g.id, greatest(g.due, c.now) AS due, c.now
      FROM unnest(%(ids)s::uuid[], %(dues)s::timestamptz[]) AS g(id, due),
           (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c) AS d
WHERE j.id = d.id
  AND j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[])
            AND state IN ('scheduled', 'ready', 'blocked', 'retrying')
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('scheduled', 'ready', 'blocked', 'retrying')
RETURNING j.id
