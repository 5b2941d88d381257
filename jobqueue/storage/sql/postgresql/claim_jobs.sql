-- Claims ready jobs, the most urgent first. Caller: Storage.claim_many (the worker's fetch loop).
-- Index: jobqueue_job_ready, one ordered scan per queue. Candidates are found without locks; then
-- the chosen rows alone are locked, and a row that changed meanwhile is passed over. Without the
-- LATERAL one scan over several queues sorts them whole (seen: 126 ms at 600,000 rows).
-- Jobs with a limit and those of limited queues are left: claim_beside_limited.sql, claim_chosen.sql.
-- {turn}: whether the order of the queues goes before rank.
-- Its commit does not wait for the disk: a claim that a crash of the server forgets leaves the job
-- ready, as if it had not been claimed, and the guard of its run matches no more. Every finish
-- waits, and lies behind its claim in the log.
-- The worker's own row is read unlocked: a claim in flight may slip past its death, which the
-- repeat in recovery and the worker's reconcile take back.
WITH candidates AS MATERIALIZED (
    SELECT c.id, {turn} AS turn
    FROM (SELECT set_config('synchronous_commit', 'off', true)) AS unhurried
    CROSS JOIN unnest(%(queues)s::text[], %(ranks)s::bigint[], %(behind)s::uuid[])
               WITH ORDINALITY AS q(name, rank, behind, turn)
    CROSS JOIN LATERAL (
        SELECT w.id, w.rank
        FROM (SELECT id, rank, task, alone, limit_key, expires_at FROM jobqueue_job
              WHERE state = 'ready' AND queue = q.name AND (rank, id) > (q.rank, q.behind)
              ORDER BY rank, id LIMIT %(window)s) AS w
        WHERE w.task = ANY(%(tasks)s::text[]) AND NOT w.alone AND w.limit_key IS NULL
          AND (w.expires_at IS NULL OR w.expires_at > coalesce(%(now)s::timestamptz, statement_timestamp()))
        ORDER BY w.rank, w.id LIMIT %(limit)s
    ) AS c
    WHERE NOT EXISTS (SELECT FROM jobqueue_queue p
                      WHERE p.name = q.name AND (p.paused OR p.limited))
    ORDER BY turn, c.rank, c.id LIMIT %(limit)s
)
UPDATE jobqueue_job AS j
SET state = 'running', fence = j.fence + 1, worker = %(worker)s::uuid,
    claimed_at = c.now, deadline = c.now + make_interval(secs => j.timeout),
    version = j.version + 1
FROM (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(ARRAY(SELECT id FROM candidates)) AND state = 'ready'
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND EXISTS (SELECT FROM jobqueue_worker k WHERE k.id = %(worker)s::uuid AND NOT k.dead)
RETURNING j.id, j.fence, j.worker, j.task, j.queue, j.backend, j.arguments::text, j.failures,
          j.max_attempts, j.suspicions, j.timeout, j.alone, date_part('epoch', j.claimed_at),
          j.rank, j.limit_key
