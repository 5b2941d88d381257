-- Writes down what became of one tick, in the transaction that settles it. Caller:
-- Storage.insert_ticks.
INSERT INTO jobqueue_tick (schedule_id, tick, at, outcome, job_id, missed)
VALUES (%(schedule)s, %(tick)s, %(now)s, %(outcome)s, %(job_id)s, %(missed)s)
