-- The first parked job of each key in each of some queues. Caller: Storage.claim_limited: nobody of
-- the same key may start before it. Index: jobqueue_job_limit.
SELECT k.key, p.rank, p.id
FROM unnest(%(keys)s::text[]) AS k(key)
CROSS JOIN unnest(%(queues)s::text[]) AS q(name)
CROSS JOIN LATERAL (
    SELECT rank, id FROM jobqueue_job
    WHERE limit_key = k.key AND state = 'blocked' AND queue = q.name AND reason = 'limit'
    ORDER BY rank, id LIMIT 1
) AS p
WHERE NOT EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = q.name AND p.paused)
