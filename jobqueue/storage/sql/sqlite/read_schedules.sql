-- Reads the schedules to look at. Caller: Storage.read_schedules (every scheduler, every turn).
-- Times are read as text: the driver would fail on one that is none, and with it on all rows.
SELECT id, name, backend, source, task, arguments, queue_name, priority, enabled, cron,
       every_seconds, at || '', time_zone, start_at || '', end_at || '', missed, missed_limit,
       overlap, jitter_seconds, plan, last_tick || '', look_at || '', error, version
FROM jobqueue_schedule
WHERE backend IN (SELECT value FROM json_each(%(backends)s))
  AND (%(everything)s OR (enabled AND (look_at IS NULL OR look_at <= %(now)s)))
ORDER BY look_at, id
LIMIT %(limit)s
