-- Writes down what the code says about a limit; an operator's numbers stay.
-- Caller: Storage.seed_limits (a worker that starts).
INSERT INTO jobqueue_limit (key, running, rate, per, code_running, code_rate, code_per, source,
                            set_by, set_reason)
VALUES (%(key)s, %(running)s, %(rate)s, %(per)s, %(running)s, %(rate)s, %(per)s, %(source)s, '', '')
ON CONFLICT (key) DO UPDATE
SET code_running = excluded.running, code_rate = excluded.rate, code_per = excluded.per,
    source = excluded.source,
    running = CASE WHEN set_by = '' THEN excluded.running ELSE running END,
    rate = CASE WHEN set_by = '' THEN excluded.rate ELSE rate END,
    per = CASE WHEN set_by = '' THEN excluded.per ELSE per END
