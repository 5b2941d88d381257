-- Drops the ticks of a schedule beyond its newest ones. Caller: Storage.insert_ticks.
-- Index: jobqueue_tick_once.
DELETE FROM jobqueue_tick
WHERE id IN (SELECT id FROM jobqueue_tick WHERE schedule_id = %(schedule)s
             ORDER BY tick DESC LIMIT -1 OFFSET %(kept)s)
