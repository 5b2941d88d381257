-- Adds one log line, unless its job is gone. Caller: Storage.write_lines, perhaps again.
-- Index: jobqueue_logline_of_run; the primary key of jobs.
INSERT INTO jobqueue_logline (job_id, fence, number, logged_at, level, logger, message)
SELECT %(job_id)s, %(fence)s, %(number)s, %(at)s, %(level)s, %(logger)s, %(message)s
WHERE EXISTS (SELECT 1 FROM jobqueue_job WHERE id = %(job_id)s)
ON CONFLICT (job_id, fence, number) DO NOTHING
