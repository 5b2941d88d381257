-- Deletes ended jobs that were found old, unless they have moved on. Caller: Storage.prune.
-- Index: primary key; that of each history by job.
WITH old AS (
    SELECT id FROM jobqueue_job
    WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('succeeded', 'cancelled', 'dead')
      AND finished_at < statement_timestamp() - make_interval(secs => %(age)s::float8)
    ORDER BY id FOR UPDATE SKIP LOCKED
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
DELETE FROM jobqueue_job WHERE id IN (SELECT id FROM old) RETURNING state
