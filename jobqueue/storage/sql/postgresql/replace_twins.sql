-- Gives waiting jobs other arguments, priority and expiry. Caller: Storage.replace_twins.
-- A job keeps its place among those of its new priority; parked for the limit of a key that it no
-- longer has, it is ready. Index: primary key.
WITH given AS MATERIALIZED (
    SELECT r.*, c.now
    FROM json_to_recordset(%(rows)s::json) AS r(
             id uuid, arguments text, priority smallint, aging float8, expires_at timestamptz,
             expires_in float8, limit_key text),
         (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
), locked AS MATERIALIZED (
    SELECT id FROM jobqueue_job
    WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE jobqueue_job AS j
SET arguments = g.arguments::json, priority = g.priority, limit_key = g.limit_key,
    state = CASE WHEN j.state = 'blocked' AND j.reason = 'limit'
                      AND j.limit_key IS DISTINCT FROM g.limit_key THEN 'ready' ELSE j.state END,
    reason = CASE WHEN j.state = 'blocked' AND j.reason = 'limit'
                       AND j.limit_key IS DISTINCT FROM g.limit_key THEN '' ELSE j.reason END,
    rank = j.rank + ((j.priority - g.priority) * g.aging * 1000000)::bigint,
    expires_at = coalesce(g.expires_at, g.now + make_interval(secs => g.expires_in)),
    version = j.version + 1
FROM given g JOIN locked l ON l.id = g.id
WHERE j.id = g.id AND j.state IN ('blocked', 'ready', 'retrying', 'scheduled')
RETURNING j.id, j.state, j.run_at, j.enqueued_at
