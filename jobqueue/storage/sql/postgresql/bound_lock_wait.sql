-- Bounds every lock wait of the current transaction, unless it is bounded closer, and returns what
-- held before. Caller: Storage.bounded (an enqueue in the caller's transaction).
SELECT s.before,
       set_config('lock_timeout', least(nullif(s.milliseconds, 0), %(milliseconds)s::int)::text, true)
FROM (SELECT current_setting('lock_timeout') AS before,
             (extract(epoch FROM current_setting('lock_timeout')::interval) * 1000)::int
                 AS milliseconds) AS s
