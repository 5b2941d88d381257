-- Drops the middle of a run that wrote more lines than are kept. Caller: Storage.write_lines.
-- Index: jobqueue_logline_of_run.
DELETE FROM jobqueue_logline
WHERE job_id = %(job_id)s AND fence = %(fence)s AND number > %(head)s AND number <= %(last)s
