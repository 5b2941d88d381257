-- Locks a running job's row with the whole guard: the first statement of context.atomic().
-- Caller: Storage.hold. A plain read would fence nothing (seen: a zombie's block committed).
-- Index: primary key; why no other: see finish_one.sql.
WITH guarded AS (
    SELECT id FROM jobqueue_job
    WHERE id = %(id)s::uuid AND state || '' = 'running' AND fence = %(fence)s::bigint
      AND worker = %(worker)s::uuid
    FOR NO KEY UPDATE
)
SELECT CASE count(*) WHEN 1 THEN 1 ELSE ('jobqueue_lease_lost:' || count(*))::int END,
       set_config('idle_in_transaction_session_timeout',
                  coalesce(%(idle_timeout)s::text,
                           current_setting('idle_in_transaction_session_timeout')), true)
FROM guarded
