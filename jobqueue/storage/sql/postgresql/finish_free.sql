-- Rows, not a statement: of a batch to finish those that nobody has locked, locked in the order of
-- their ids. A part of finish_jobs.sql. Waits for nobody, as end_attempts.sql.
SELECT id FROM jobqueue_job
WHERE id = ANY(ARRAY(SELECT id FROM given)) AND state || '' = 'running' AND worker = %(worker)s::uuid
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
