-- Deletes a small batch of jobs that ended long ago. Caller: Storage.prune.
-- Walks the primary key: ids grow with the time of enqueue, so the oldest come first.
WITH old AS (
    SELECT id FROM jobqueue_job
    WHERE state = %(state)s
      AND finished_at < statement_timestamp() - make_interval(secs => %(age)s::float8)
    ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), attempts AS (
    DELETE FROM jobqueue_attempt WHERE job_id IN (SELECT id FROM old)
), steps AS (
    DELETE FROM jobqueue_step WHERE job_id IN (SELECT id FROM old)
), tags AS (
    DELETE FROM jobqueue_jobtag WHERE job_id IN (SELECT id FROM old)
), progress AS (
    DELETE FROM jobqueue_progress WHERE job_id IN (SELECT id FROM old)
), lines AS (
    DELETE FROM jobqueue_logline WHERE job_id IN (SELECT id FROM old)
)
DELETE FROM jobqueue_job WHERE id IN (SELECT id FROM old) RETURNING id
