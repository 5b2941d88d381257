-- Settles a schedule if it is still what its scheduler read. Caller: Storage.move_schedule.
-- Times are compared in milliseconds: Django writes them in more than one form.
UPDATE jobqueue_schedule
SET plan = %(plan)s,
    last_tick = CASE WHEN %(last_tick)s IS NULL THEN last_tick
                     ELSE max(coalesce(last_tick, %(last_tick)s), %(last_tick)s) END,
    look_at = %(look_at)s,
    error = %(error)s,
    error_at = CASE WHEN %(error)s = '' THEN NULL
                    WHEN error = %(error)s THEN error_at ELSE %(now)s END
WHERE id = %(id)s AND version = %(version)s AND enabled = %(enabled)s AND plan = %(seen_plan)s
  AND strftime('%%Y-%%m-%%d %%H:%%M:%%f', last_tick)
      IS strftime('%%Y-%%m-%%d %%H:%%M:%%f', %(seen_tick)s)
