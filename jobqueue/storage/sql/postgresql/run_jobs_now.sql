-- Makes waiting jobs due now. Caller: Storage.run_now_many. Locked rows are left and reported.
-- The lesser of both: a job that has been due for longer must not lose its place by it.
-- One that has expired is to run all the same.
UPDATE jobqueue_job AS j
SET state = CASE WHEN j.state = 'blocked' THEN 'blocked' ELSE 'ready' END,
    run_at = least(j.run_at, c.now),
    expires_at = CASE WHEN j.expires_at > c.now THEN j.expires_at END,
    rank = least(j.rank, (extract(epoch FROM c.now) * 1000000)::bigint
                         - (j.priority * %(aging)s::float8 * 1000000)::bigint),
    version = j.version + 1
FROM (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[])
            AND state IN ('scheduled', 'ready', 'blocked', 'retrying')
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('scheduled', 'ready', 'blocked', 'retrying')
RETURNING j.id
