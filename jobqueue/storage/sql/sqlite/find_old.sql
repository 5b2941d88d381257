-- Looks at a window of jobs, the oldest first, for those that ended longer ago than their rule
-- allows, without a lock. Caller: Storage.find_old. A rule without a time keeps what it matches.
-- Index: the primary key (ids grow with the time of enqueue).
WITH seen AS (
    SELECT id, state, queue, finished_at, arguments FROM jobqueue_job
    WHERE id > %(after)s ORDER BY id LIMIT %(window)s
), rules AS (
    SELECT json_extract(value, '$.state') AS state, json_extract(value, '$.queue') AS queue,
           json_extract(value, '$.before') AS before
    FROM json_each(%(rules)s)
)
SELECT seen.id FROM seen
WHERE seen.finished_at < (
          SELECT r.before FROM rules AS r
          WHERE r.state = seen.state AND (r.queue = seen.queue OR r.queue IS NULL)
          ORDER BY r.queue IS NULL LIMIT 1)
  AND (%(scrubbed)s IS NULL OR seen.arguments <> %(scrubbed)s)
ORDER BY seen.id LIMIT %(limit)s
