-- Takes the right to count, if it is time and nobody has it; fails if somebody has counted since
-- the snapshot. Caller: Storage.hold_rolling.
-- Local settings: a process that freezes here loses its session, so that counting goes on
-- elsewhere; and the sums are hashed, by this one process: the planner, which knows nothing of
-- minutes and buckets, expects as many groups as rows and would sort them on disk.
SELECT r.attempt_id, r.gaps::text, c.now,
       set_config('idle_in_transaction_session_timeout', '10s', true),
       set_config('enable_sort', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true),
       set_config('jit', 'off', true)
FROM jobqueue_rolling r,
     (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE r.id = 1
  AND (%(early)s OR r.not_before IS NULL OR r.not_before <= c.now
       OR r.not_before > c.now + interval '10 minutes')
FOR UPDATE OF r SKIP LOCKED
