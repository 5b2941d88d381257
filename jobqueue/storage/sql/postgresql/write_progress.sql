-- Keeps the last progress of each run. Caller: Storage.write_progress.
-- The job's row is read, never locked: its own transaction may hold it. A run whose job has been
-- pruned is left out; nothing would ever delete its row.
-- Index: jobqueue_progress_job_fence; the primary key of jobs.
INSERT INTO jobqueue_progress AS p (job_id, fence, done, total, message, reported_at)
SELECT r.job_id, r.fence, r.done, r.total, r.message,
       statement_timestamp() - make_interval(secs => r.ago)
FROM json_to_recordset(%(rows)s::json) AS r(
         job_id uuid, fence bigint, done float8, total float8, message text, ago float8)
WHERE EXISTS (SELECT FROM jobqueue_job AS j WHERE j.id = r.job_id)
ON CONFLICT (job_id, fence) DO UPDATE
SET done = excluded.done, total = excluded.total, message = excluded.message,
    reported_at = excluded.reported_at
