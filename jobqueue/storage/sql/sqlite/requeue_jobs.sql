-- Gives ended jobs a new budget; history and number of attempts stay. Caller: Storage.requeue_many.
-- One whose time to start will have passed is to run all the same: it does not expire again.
-- jobs: id, due time, due time in microseconds, whether that is now.
UPDATE jobqueue_job
SET state = CASE WHEN g.is_now THEN 'ready' ELSE 'scheduled' END,
    finished_at = NULL, failures = 0, suspicions = 0, alone = 0, reason = '', run_at = g.due,
    expires_at = CASE WHEN expires_at > g.due THEN expires_at END,
    rank = g.due_rank - CAST(round(priority * %(aging)s * 1000000.0) AS INTEGER),
    version = version + 1
FROM (SELECT json_extract(value, '$[0]') AS job, json_extract(value, '$[1]') AS due,
             json_extract(value, '$[2]') AS due_rank, json_extract(value, '$[3]') AS is_now
      FROM json_each(%(jobs)s)) AS g
WHERE jobqueue_job.id = g.job AND state IN ('dead', 'cancelled')
RETURNING id
