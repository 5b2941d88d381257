-- Reads the schedules to look at, with the time that all of it is about, in the last column.
-- Caller: Storage.read_schedules (every scheduler, at every turn). A small table is read as a whole.
SELECT s.id, s.name, s.backend, s.source, s.task, s.arguments::text, s.queue_name, s.priority,
       s.enabled, s.cron, s.every_seconds, s.at, s.time_zone, s.start_at, s.end_at, s.missed,
       s.missed_limit, s.overlap, s.jitter_seconds, s.plan, s.last_tick, s.look_at, s.error,
       s.version, c.now
FROM jobqueue_schedule AS s,
     (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE s.backend = ANY(%(backends)s::text[])
  AND (%(everything)s OR (s.enabled AND (s.look_at IS NULL OR s.look_at <= c.now)))
ORDER BY s.look_at NULLS FIRST, s.id
LIMIT %(limit)s
