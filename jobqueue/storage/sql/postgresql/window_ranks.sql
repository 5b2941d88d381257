-- The rank of the last row of each queue's claim window, NULL where the window is not full.
-- Caller: Storage.window_ranks, only after a claim that found nothing it could run.
-- Index: jobqueue_job_ready.
SELECT (SELECT rank FROM jobqueue_job
        WHERE state = 'ready' AND queue = q.name AND rank >= q.floor
        ORDER BY rank, id OFFSET %(window)s - 1 LIMIT 1)
FROM unnest(%(queues)s::text[], %(floors)s::bigint[]) WITH ORDINALITY AS q(name, floor, n)
ORDER BY q.n
