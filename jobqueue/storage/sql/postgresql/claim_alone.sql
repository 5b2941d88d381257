-- Claims one suspect that must run alone and has no limit. Caller: Storage.claim_alone (a one-slot process).
-- Index: jobqueue_job_alone.
UPDATE jobqueue_job AS j
SET state = 'running', fence = j.fence + 1, worker = %(worker)s::uuid,
    claimed_at = c.now, deadline = c.now + make_interval(secs => j.timeout),
    version = j.version + 1
FROM (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job s
          WHERE s.state = 'ready' AND s.alone AND s.queue = ANY(%(queues)s::text[])
            AND s.task = ANY(%(tasks)s::text[]) AND s.limit_key IS NULL
            AND (s.expires_at IS NULL OR s.expires_at > c.now)
            AND NOT EXISTS (SELECT FROM jobqueue_queue p
                            WHERE p.name = s.queue AND (p.paused OR p.limited))
          ORDER BY s.rank, s.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED))
  AND EXISTS (SELECT FROM jobqueue_worker k WHERE k.id = %(worker)s::uuid AND NOT k.dead)
RETURNING j.id, j.fence, j.worker, j.task, j.queue, j.backend, j.arguments::text, j.failures,
          j.max_attempts, j.suspicions, j.timeout, j.alone, date_part('epoch', j.claimed_at),
          j.rank, j.limit_key
