-- Gives waiting jobs another time to run, and expiry. Caller: Storage.reschedule_twins.
-- What is blocked stays so, unless it is not due any more and waits for no earlier job of its schedule. Index: primary key.
WITH given AS MATERIALIZED (
    SELECT r.*,
           CASE WHEN r.delay IS NOT NULL THEN c.now + make_interval(secs => r.delay)
                ELSE coalesce(r.run_at, c.now) END AS due,
           c.now AS now
    FROM json_to_recordset(%(rows)s::json) AS r(
             id uuid, run_at timestamptz, delay float8, aging float8, expires_at timestamptz,
             expires_in float8),
         (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
), locked AS MATERIALIZED (
    SELECT id FROM jobqueue_job
    WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE jobqueue_job AS j
SET state = CASE WHEN g.due <= g.now THEN CASE j.state WHEN 'blocked' THEN j.state ELSE 'ready' END
                 WHEN j.state = 'retrying' OR j.reason = 'overlap' THEN j.state
                 ELSE 'scheduled' END,
    reason = CASE WHEN j.state = 'blocked' AND (g.due <= g.now OR j.reason = 'overlap')
                  THEN j.reason ELSE '' END,
    run_at = g.due,
    rank = (extract(epoch FROM greatest(g.due, g.now)) * 1000000)::bigint
           - (j.priority * g.aging * 1000000)::bigint,
    expires_at = coalesce(g.expires_at, g.now + make_interval(secs => g.expires_in)),
    version = j.version + 1
FROM given g JOIN locked l ON l.id = g.id
WHERE j.id = g.id AND j.state IN ('blocked', 'ready', 'retrying', 'scheduled')
RETURNING j.id, j.state, j.run_at, j.enqueued_at
