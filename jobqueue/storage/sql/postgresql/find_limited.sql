-- Ready jobs with a limit in the claim windows, the most urgent first, without a lock.
-- Caller: Storage.find_limited: to park those of full keys, and for suspects that must run alone.
-- Index: jobqueue_job_ready.
SELECT c.id, c.rank, q.name, c.limit_key,
       EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = q.name AND p.limited) AS limited
FROM unnest(%(queues)s::text[], %(ranks)s::bigint[], %(behind)s::uuid[]) AS q(name, rank, behind)
CROSS JOIN LATERAL (
    SELECT w.id, w.rank, w.limit_key
    FROM (SELECT id, rank, task, alone, limit_key, expires_at FROM jobqueue_job
          WHERE state = 'ready' AND queue = q.name AND (rank, id) > (q.rank, q.behind)
          ORDER BY rank, id LIMIT %(window)s) AS w
    WHERE w.task = ANY(%(tasks)s::text[]) AND w.alone = %(alone)s
      AND (w.expires_at IS NULL OR w.expires_at > coalesce(%(now)s::timestamptz, statement_timestamp()))
      AND (w.limit_key IS NOT NULL
           OR EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = q.name AND p.limited))
) AS c
WHERE NOT EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = q.name AND p.paused)
ORDER BY c.rank, c.id LIMIT %(limit)s
