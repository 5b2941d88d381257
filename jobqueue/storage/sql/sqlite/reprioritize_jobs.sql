-- Gives waiting jobs another priority. Caller: Storage.reprioritize_many.
-- The rank counts from when the job was due, not from now: a job that has waited for an hour would
-- fall back behind newer ones by being given a higher priority. Microseconds: whole seconds, and
-- the six decimals behind the point (Django leaves them out where they are zero).
UPDATE jobqueue_job
SET priority = %(priority)s,
    rank = CAST(strftime('%%s', max(run_at, enqueued_at)) AS INTEGER) * 1000000
           + CAST(substr(max(run_at, enqueued_at), 21, 6) AS INTEGER)
           - CAST(round(%(priority)s * %(aging)s * 1000000.0) AS INTEGER),
    version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s))
  AND state IN ('scheduled', 'ready', 'blocked', 'retrying')
RETURNING id
