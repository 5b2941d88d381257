-- Makes waiting jobs as suspect as the twins that were superseded by them: it is the same work that
-- may have killed a worker. Caller: Storage.end_many. Locked rows are left. Index: primary key.
WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(rows)s::json) AS r(id uuid, suspicions smallint, alone boolean)
), locked AS MATERIALIZED (
    SELECT id FROM jobqueue_job
    WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobqueue_job AS j
SET suspicions = greatest(j.suspicions, g.suspicions), alone = j.alone OR g.alone,
    version = j.version + 1
FROM given g JOIN locked l ON l.id = g.id
WHERE j.id = g.id AND j.state IN ('blocked', 'ready', 'retrying', 'scheduled')
