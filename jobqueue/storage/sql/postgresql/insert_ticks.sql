-- Writes down what became of ticks, in the transaction that settles them. Caller:
-- Storage.insert_ticks.
INSERT INTO jobqueue_tick (schedule_id, tick, at, outcome, job_id, missed)
SELECT %(schedule)s, r.tick, coalesce(%(now)s::timestamptz, statement_timestamp()), r.outcome,
       r.job_id, r.missed
FROM json_to_recordset(%(rows)s::json)
     AS r(tick timestamptz, outcome text, job_id uuid, missed integer)
