-- What stands in each queue's claim window: whether the claim could take any of it, and the place
-- of its last row where the window is full. Caller: Storage.read_windows, only after a claim that
-- came back empty: were the rows locked by others, or is none of them for this worker?
-- Jobs with a limit are not usable by that claim, but told. A paused queue shows nothing.
-- Index: jobqueue_job_ready.
SELECT coalesce(w.is_usable, false),
       coalesce(w.has_limited, false),
       CASE WHEN w.rows = %(window)s THEN w.last_rank END, w.last_id
FROM unnest(%(queues)s::text[], %(ranks)s::bigint[], %(behind)s::uuid[])
     WITH ORDINALITY AS q(name, rank, behind, n)
LEFT JOIN LATERAL (
    SELECT count(*) AS rows, max(r.rank) AS last_rank,
           (array_agg(r.id ORDER BY r.rank DESC, r.id DESC))[1] AS last_id,
           bool_or(r.is_mine AND NOT r.has_limit) AS is_usable,
           bool_or(r.is_mine AND r.has_limit) AS has_limited
    FROM (SELECT rank, id,
                 task = ANY(%(tasks)s::text[]) AND NOT alone
                 AND (expires_at IS NULL OR expires_at > statement_timestamp()) AS is_mine,
                 limit_key IS NOT NULL
                 OR EXISTS (SELECT FROM jobqueue_queue p
                            WHERE p.name = q.name AND p.limited) AS has_limit
          FROM jobqueue_job
          WHERE state = 'ready' AND queue = q.name AND (rank, id) > (q.rank, q.behind)
          ORDER BY rank, id LIMIT %(window)s) AS r
) AS w ON NOT EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = q.name AND p.paused)
ORDER BY q.n
