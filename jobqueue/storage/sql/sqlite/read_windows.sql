-- What stands in one queue's claim window: whether the claim could take any of it, and the place
-- of its last row where the window is full. Caller: Storage.read_windows, once a queue, only after
-- a claim that came back empty. Jobs with a limit are not usable by that claim, but told.
-- A paused queue shows nothing. Index: jobqueue_job_ready.
WITH w AS (
    SELECT rank, id,
           task IN (SELECT value FROM json_each(%(tasks)s)) AND NOT alone
           AND (expires_at IS NULL OR expires_at > strftime(
                    '%%Y-%%m-%%d %%H:%%M:%%f', 'now') || '000') AS is_mine,
           limit_key IS NOT NULL
           OR EXISTS (SELECT 1 FROM jobqueue_queue p
                      WHERE p.name = %(queue)s AND p.limited) AS has_limit
    FROM jobqueue_job
    WHERE state = 'ready' AND queue = %(queue)s AND (rank, id) > (%(rank)s, %(behind)s)
      AND NOT EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = %(queue)s AND p.paused)
    ORDER BY rank, id LIMIT %(window)s
), last AS (
    SELECT rank, id FROM w ORDER BY rank DESC, id DESC LIMIT 1
)
SELECT coalesce(max(w.is_mine AND NOT w.has_limit), 0),
       coalesce(max(w.is_mine AND w.has_limit), 0),
       CASE WHEN count(*) = %(window)s THEN (SELECT rank FROM last) END, (SELECT id FROM last)
FROM w
