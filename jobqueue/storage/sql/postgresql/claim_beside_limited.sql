-- Claims ready jobs without a limit, and tells which jobs with one stood among the most urgent.
-- Caller: Storage.claim_beside_limited, while a worker's queues hold jobs with a limit. Everything
-- else as in claim_jobs.sql, which spares all others the planning of this (a fifth of a small claim).
-- The jobs left come behind the claimed, without a fence, and with "its queue is limited" in the
-- place of alone. Index: jobqueue_job_ready.
WITH candidates AS MATERIALIZED (
    SELECT c.id, c.rank, c.limit_key, q.name AS queue, {turn} AS turn,
           EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = q.name AND p.limited) AS limited
    FROM (SELECT set_config('synchronous_commit', 'off', true)) AS unhurried
    CROSS JOIN unnest(%(queues)s::text[], %(ranks)s::bigint[], %(behind)s::uuid[])
               WITH ORDINALITY AS q(name, rank, behind, turn)
    CROSS JOIN LATERAL (
        SELECT w.id, w.rank, w.limit_key
        FROM (SELECT id, rank, task, alone, limit_key, expires_at FROM jobqueue_job
              WHERE state = 'ready' AND queue = q.name AND (rank, id) > (q.rank, q.behind)
              ORDER BY rank, id LIMIT %(window)s) AS w
        WHERE w.task = ANY(%(tasks)s::text[]) AND NOT w.alone
          AND (w.expires_at IS NULL OR w.expires_at > coalesce(%(now)s::timestamptz, statement_timestamp()))
        ORDER BY w.rank, w.id LIMIT %(limit)s
    ) AS c
    WHERE NOT EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = q.name AND p.paused)
    ORDER BY turn, c.rank, c.id LIMIT %(limit)s
), claimed AS (
    UPDATE jobqueue_job AS j
    SET state = 'running', fence = j.fence + 1, worker = %(worker)s::uuid,
        claimed_at = c.now, deadline = c.now + make_interval(secs => j.timeout),
        version = j.version + 1
    FROM (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
    WHERE j.id = ANY(ARRAY(
              SELECT id FROM jobqueue_job
              WHERE id = ANY(ARRAY(SELECT id FROM candidates
                                   WHERE limit_key IS NULL AND NOT limited))
                AND state = 'ready'
              ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
      AND EXISTS (SELECT FROM jobqueue_worker k WHERE k.id = %(worker)s::uuid AND NOT k.dead)
    RETURNING j.id, j.fence, j.worker, j.task, j.queue, j.backend, j.arguments::text, j.failures,
              j.max_attempts, j.suspicions, j.timeout, j.alone, date_part('epoch', j.claimed_at),
              j.rank, j.limit_key
)
SELECT * FROM claimed
UNION ALL (
    SELECT id, NULL, NULL, '', queue, '', '', 0, NULL, 0, 0, limited, NULL, rank, limit_key
    FROM candidates AS c WHERE limit_key IS NOT NULL OR limited ORDER BY turn, rank, id
)
