-- Makes waiting jobs due now. Caller: Storage.run_now_many.
-- The lesser of both: a job that has been due for longer must not lose its place by it.
-- One that has expired is to run all the same.
UPDATE jobqueue_job
SET state = CASE WHEN state = 'blocked' THEN 'blocked' ELSE 'ready' END,
    run_at = min(run_at, %(now)s),
    expires_at = CASE WHEN expires_at > %(now)s THEN expires_at END,
    rank = min(rank, %(now_rank)s - CAST(round(priority * %(aging)s * 1000000.0) AS INTEGER)),
    version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s))
  AND state IN ('scheduled', 'ready', 'blocked', 'retrying')
RETURNING id
