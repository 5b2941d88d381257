-- The rank of the last row of each queue's claim window, NULL where the window is not full.
-- Caller: Storage.window_ranks, only after a claim that found nothing it could run.
-- Index: jobqueue_job_ready.
SELECT (SELECT j.rank FROM jobqueue_job j
        WHERE j.state = 'ready' AND j.queue = json_extract(lane.value, '$[0]')
          AND j.rank >= json_extract(lane.value, '$[1]')
        ORDER BY j.rank, j.id LIMIT 1 OFFSET %(window)s - 1)
FROM json_each(%(lanes)s) AS lane
ORDER BY lane.key
