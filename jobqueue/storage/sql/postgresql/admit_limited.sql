-- Makes ready the parked jobs that are among the first `rooms` of their key, by rank over those
-- ready and those parked. Caller: Storage.admit_limited (whoever ended a job of the key, and the
-- sweep). Paused queues are passed over, others than the given too (NULL: all).
-- Lanes are the pairs of a key and a queue: found by jumping, each read in order.
-- Index: jobqueue_job_limit.
WITH RECURSIVE given AS (
    SELECT * FROM unnest(%(keys)s::text[], %(rooms)s::int[]) AS g(key, room)
), lanes AS (
    SELECT g.key, g.room, s.state,
           (SELECT min(j.queue) FROM jobqueue_job j
            WHERE j.limit_key = g.key AND j.state = s.state
              AND j.state IN ('blocked', 'ready', 'running')) AS queue
    FROM given g CROSS JOIN (VALUES ('blocked'), ('ready')) AS s(state)
    UNION ALL
    SELECT l.key, l.room, l.state,
           (SELECT min(j.queue) FROM jobqueue_job j
            WHERE j.limit_key = l.key AND j.state = l.state AND j.queue > l.queue
              AND j.state IN ('blocked', 'ready', 'running'))
    FROM lanes l WHERE l.queue IS NOT NULL
), placed AS MATERIALIZED (
    SELECT w.id, l.state, l.room,
           row_number() OVER (PARTITION BY l.key ORDER BY w.rank, w.id) AS place
    FROM lanes l CROSS JOIN LATERAL (
        SELECT j.id, j.rank FROM jobqueue_job j
        WHERE j.limit_key = l.key AND j.state = l.state AND j.queue = l.queue
          AND j.state IN ('blocked', 'ready', 'running')
          AND (j.state = 'ready' OR j.reason = 'limit')
        ORDER BY j.rank, j.id LIMIT l.room
    ) AS w
    WHERE (%(queues)s::text[] IS NULL OR l.queue = ANY(%(queues)s::text[]))
      AND NOT EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = l.queue AND p.paused)
)
UPDATE jobqueue_job AS j SET state = 'ready', reason = '', version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job
          WHERE id = ANY(ARRAY(SELECT id FROM placed WHERE state = 'blocked' AND place <= room))
            AND state = 'blocked' AND reason = 'limit'
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  AND j.state = 'blocked'
RETURNING j.limit_key, j.queue
