-- Records a step under the guard. Caller: Storage.record_step, on the side connection.
-- KEY SHARE: the job's own transaction may hold the row FOR NO KEY UPDATE; anything stronger here
-- would wait for it, which PostgreSQL cannot see as a deadlock.
-- Index: primary key; why no other: see finish_one.sql.
WITH guarded AS (
    SELECT id FROM jobqueue_job
    WHERE id = %(id)s::uuid AND state || '' = 'running' AND fence = %(fence)s::bigint
      AND worker = %(worker)s::uuid
    FOR KEY SHARE
), recorded AS (
    INSERT INTO jobqueue_step (job_id, name, result, fence, recorded_at)
    SELECT id, %(name)s, %(result)s::json, %(fence)s::bigint, statement_timestamp() FROM guarded
    ON CONFLICT (job_id, name) DO NOTHING
)
SELECT CASE count(*) WHEN 1 THEN 1 ELSE ('jobqueue_lease_lost:' || count(*))::int END FROM guarded
