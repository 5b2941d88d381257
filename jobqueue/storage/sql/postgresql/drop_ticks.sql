-- Drops the ticks of a schedule beyond its newest ones. Caller: Storage.insert_ticks.
-- Index: jobqueue_tick_once.
DELETE FROM jobqueue_tick
WHERE id = ANY(ARRAY(
          SELECT id FROM jobqueue_tick WHERE schedule_id = %(schedule)s
          ORDER BY tick DESC OFFSET %(kept)s))
