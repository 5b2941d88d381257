-- What stands in one queue's claim window: whether the claim could take any of it, and the rank
-- of its last row where the window is full. Caller: Storage.read_windows, once a queue, only after
-- a claim that came back empty. A paused queue shows nothing. Index: jobqueue_job_ready.
SELECT coalesce(max(r.task IN (SELECT value FROM json_each(%(tasks)s)) AND NOT r.alone
                    AND (r.expires_at IS NULL OR r.expires_at > strftime(
                             '%%Y-%%m-%%d %%H:%%M:%%f', 'now') || '000')), 0),
       CASE WHEN count(*) = %(window)s THEN max(r.rank) END
FROM (SELECT rank, task, alone, expires_at FROM jobqueue_job
      WHERE state = 'ready' AND queue = %(queue)s AND rank >= %(floor)s
      ORDER BY rank, id LIMIT %(window)s) AS r
WHERE NOT EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = %(queue)s AND p.paused)
