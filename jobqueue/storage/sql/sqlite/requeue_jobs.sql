-- Gives ended jobs a new budget; history and number of attempts stay. Caller: Storage.requeue_many.
-- One whose time to start has passed is to run all the same: it does not expire again.
UPDATE jobqueue_job
SET state = 'ready', finished_at = NULL, failures = 0, suspicions = 0, alone = 0, reason = '',
    run_at = %(now)s, expires_at = CASE WHEN expires_at > %(now)s THEN expires_at END,
    rank = %(now_rank)s - CAST(round(priority * %(aging)s * 1000000.0) AS INTEGER),
    version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state IN ('dead', 'cancelled')
RETURNING id
