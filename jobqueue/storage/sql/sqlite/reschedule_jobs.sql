-- Gives waiting jobs another due time. Caller: Storage.reschedule_many.
-- jobs: id, due time, due time in microseconds, whether that is now. What a blocked job waits for
-- is looked at again when it is due; parents, and earlier jobs of its schedule, that have not ended
-- keep it blocked in any case.
-- One that would expire before it is due does not expire at all.
UPDATE jobqueue_job
SET state = CASE WHEN state = 'blocked' AND (g.is_now OR pending > 0 OR reason = 'overlap') THEN 'blocked'
                 WHEN g.is_now THEN 'ready'
                 WHEN state = 'retrying' THEN 'retrying'
                 ELSE 'scheduled' END,
    reason = CASE WHEN state = 'blocked' AND NOT g.is_now AND pending = 0 AND reason <> 'overlap'
                  THEN '' ELSE reason END,
    run_at = g.due, expires_at = CASE WHEN expires_at > g.due THEN expires_at END,
    rank = g.due_rank - CAST(round(priority * %(aging)s * 1000000.0) AS INTEGER),
    version = version + 1
FROM (SELECT json_extract(value, '$[0]') AS job, json_extract(value, '$[1]') AS due,
             json_extract(value, '$[2]') AS due_rank, json_extract(value, '$[3]') AS is_now
      FROM json_each(%(jobs)s)) AS g
WHERE jobqueue_job.id = g.job AND state IN ('scheduled', 'ready', 'blocked', 'retrying')
RETURNING id
