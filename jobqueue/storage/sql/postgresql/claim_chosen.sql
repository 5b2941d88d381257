-- Claims the jobs that were chosen while their keys are locked. Caller: Storage.claim_limited.
-- A row that was locked, moved or ended meanwhile is passed over. Index: primary key.
UPDATE jobqueue_job AS j
SET state = 'running', fence = j.fence + 1, worker = %(worker)s::uuid,
    claimed_at = c.now, deadline = c.now + make_interval(secs => j.timeout),
    version = j.version + 1
FROM (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE j.id = ANY(ARRAY(
          SELECT t.id FROM jobqueue_job t
          JOIN unnest(%(ids)s::uuid[], %(keys)s::text[], %(queues)s::text[])
               AS g(id, key, queue) ON g.id = t.id
          WHERE t.id = ANY(%(ids)s::uuid[]) AND t.state = 'ready' AND t.queue = g.queue
            AND t.limit_key IS NOT DISTINCT FROM g.key
            AND (t.expires_at IS NULL OR t.expires_at > c.now)
            AND NOT EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = t.queue AND p.paused)
          ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED))
  AND EXISTS (SELECT FROM jobqueue_worker k WHERE k.id = %(worker)s::uuid AND NOT k.dead)
RETURNING j.id, j.fence, j.worker, j.task, j.queue, j.backend, j.arguments::text, j.failures,
          j.max_attempts, j.suspicions, j.timeout, j.alone, date_part('epoch', j.claimed_at),
          j.rank, j.limit_key
