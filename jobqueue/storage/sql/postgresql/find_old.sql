-- Looks at a window of jobs, the oldest first, for those that ended longer ago than their rule
-- allows. Caller: Storage.find_old. Locks nothing. A rule without an age keeps what it matches.
-- columns, condition: for jobs that still have arguments; only theirs are read from their storage.
-- Index: the primary key (ids grow with the time of enqueue).
WITH seen AS MATERIALIZED (
    SELECT id, state, queue, finished_at, enqueued_at {columns} FROM jobqueue_job
    WHERE id > %(after)s::uuid ORDER BY id LIMIT %(window)s
), rules AS MATERIALIZED (
    SELECT r.* FROM json_to_recordset(%(rules)s::json) AS r(state text, queue text, seconds float8)
), old AS MATERIALIZED (
    SELECT s.id FROM seen AS s
    CROSS JOIN LATERAL (
        SELECT r.seconds FROM rules AS r
        WHERE r.state = s.state AND (r.queue = s.queue OR r.queue IS NULL)
        ORDER BY r.queue NULLS LAST LIMIT 1) AS rule
    WHERE s.finished_at IS NOT NULL
      AND extract(epoch FROM statement_timestamp() - s.finished_at) > rule.seconds {condition}
    ORDER BY s.id LIMIT %(limit)s
)
SELECT ARRAY(SELECT id FROM old ORDER BY id),
       (SELECT count(*) FROM seen),
       (SELECT id FROM seen ORDER BY id DESC LIMIT 1),
       (SELECT bool_and(extract(epoch FROM statement_timestamp() - enqueued_at)
                        < %(youngest)s::float8) FROM seen)
