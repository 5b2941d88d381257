-- Adds to error groups, or makes them; the newest error names the job.
-- Caller: Storage.add_to_error_groups. Index: primary key.
INSERT INTO jobqueue_errorgroup AS g (fingerprint, error_class, message, count, first_seen,
                                      last_seen, job_id, task, queue)
SELECT fingerprint, error_class, message, count, first_seen, last_seen, job_id, task, queue
FROM json_to_recordset(%(rows)s::json) AS r(
         fingerprint text, error_class text, message text, count bigint, first_seen timestamptz,
         last_seen timestamptz, job_id uuid, task text, queue text)
ON CONFLICT (fingerprint) DO UPDATE
SET count = g.count + excluded.count,
    first_seen = least(g.first_seen, excluded.first_seen),
    last_seen = greatest(g.last_seen, excluded.last_seen),
    message = excluded.message, job_id = excluded.job_id, task = excluded.task,
    queue = excluded.queue
