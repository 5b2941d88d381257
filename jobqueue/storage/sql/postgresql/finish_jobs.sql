-- Finishes a batch of jobs that wrote nothing themselves. Caller: Storage.finish_many.
-- {rows}: the ids of those that it is to touch: finish_soon.sql or finish_free.sql.
-- What did not match is reported, not raised: a batch carries no effects.
-- Index: primary key; why no other: see finish_one.sql.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::uuid[], %(fences)s::bigint[], %(results)s::text[],
                         %(started)s::float8[], %(ended)s::float8[])
                  AS g(id, fence, result, started_ago, ended_ago)
), guarded AS (
    UPDATE jobqueue_job AS j
    SET state = 'succeeded', worker = NULL, claimed_at = NULL, deadline = NULL,
        finished_at = statement_timestamp() - make_interval(secs => g.ended_ago),
        result = g.result::json, attempts = j.attempts + 1, suspicions = 0, alone = false,
        error_class = '', error_message = '', error_fingerprint = '', reason = '',
        version = j.version + 1
    FROM given g
    WHERE j.id = ANY(ARRAY({rows})) AND g.id = j.id AND j.state || '' = 'running'
      AND j.fence = g.fence AND j.worker = %(worker)s::uuid
    RETURNING j.id, j.fence, j.attempts, j.task, j.queue, j.finished_at, g.started_ago,
              greatest(j.run_at, j.enqueued_at) AS due_at
), history AS (
    INSERT INTO jobqueue_attempt (job_id, number, fence, worker, task, queue, outcome, charged,
                                  due_at, started_at, finished_at, error_class, error_message,
                                  error_fingerprint, traceback)
    SELECT id, attempts, fence, %(worker)s::uuid, task, queue, 'succeeded', false,
           due_at, statement_timestamp() - make_interval(secs => started_ago), finished_at,
           '', '', '', ''
    FROM guarded
)
SELECT g.id, g.fence FROM given g LEFT JOIN guarded u ON u.id = g.id AND u.fence = g.fence
WHERE u.id IS NULL AND (SELECT count(*) FROM guarded) < (SELECT count(*) FROM given)
