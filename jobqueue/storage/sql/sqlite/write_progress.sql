-- Keeps the last progress of one run, unless its job is gone. Caller: Storage.write_progress.
-- Index: jobqueue_progress_job_fence; the primary key of jobs.
INSERT INTO jobqueue_progress (job_id, fence, done, total, message, reported_at)
SELECT %(job_id)s, %(fence)s, %(done)s, %(total)s, %(message)s, %(at)s
WHERE EXISTS (SELECT 1 FROM jobqueue_job WHERE id = %(job_id)s)
ON CONFLICT (job_id, fence) DO UPDATE
SET done = excluded.done, total = excluded.total, message = excluded.message,
    reported_at = excluded.reported_at
