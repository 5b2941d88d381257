-- Replaces the arguments of ended jobs by a mark. Caller: Storage.scrub_arguments.
-- Index: primary key.
UPDATE jobqueue_job AS j
SET arguments = %(scrubbed)s::json, version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('succeeded', 'cancelled')
            AND finished_at < statement_timestamp() - make_interval(secs => %(age)s::float8)
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state IN ('succeeded', 'cancelled')
RETURNING j.id
