-- Gives waiting jobs another priority. Caller: Storage.reprioritize_many. Locked rows are left.
-- The rank counts from when the job was due, not from now: a job that has waited for an hour would
-- fall back behind newer ones by being given a higher priority.
UPDATE jobqueue_job AS j
SET priority = %(priority)s,
    rank = (extract(epoch FROM greatest(j.run_at, j.enqueued_at)) * 1000000)::bigint
           - (%(priority)s * %(aging)s::float8 * 1000000)::bigint,
    version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[])
            AND state IN ('scheduled', 'ready', 'blocked', 'retrying')
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('scheduled', 'ready', 'blocked', 'retrying')
RETURNING j.id
