-- Settles a schedule if it is still what its scheduler read. Caller: Storage.move_schedule.
-- The row's lock decides between schedulers: one that somebody holds is left to them. last_tick
-- never moves back, whatever clock it was computed by. Index: primary key.
UPDATE jobqueue_schedule AS s
SET plan = %(plan)s,
    last_tick = greatest(s.last_tick, %(last_tick)s::timestamptz),
    look_at = %(look_at)s::timestamptz,
    error = %(error)s,
    error_at = CASE WHEN %(error)s = '' THEN NULL
                    WHEN s.error = %(error)s THEN s.error_at
                    ELSE coalesce(%(now)s::timestamptz, statement_timestamp()) END
WHERE s.id = ANY(ARRAY(
          SELECT id FROM jobqueue_schedule
          WHERE id = %(id)s AND version = %(version)s AND enabled = %(enabled)s
            AND plan = %(seen_plan)s
            AND last_tick IS NOT DISTINCT FROM %(seen_tick)s::timestamptz
          FOR NO KEY UPDATE SKIP LOCKED))
RETURNING s.id,
    set_config('idle_in_transaction_session_timeout',
               coalesce(%(idle_timeout)s,
                        current_setting('idle_in_transaction_session_timeout')), true)
