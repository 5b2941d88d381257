-- Writes down what the code says about limits; an operator's numbers stay. Caller: Storage.seed_limits
-- (a worker that starts). Rows in order of their keys, so that two that start do not deadlock.
INSERT INTO jobqueue_limit AS l (key, running, rate, per, code_running, code_rate, code_per, source,
                                 set_by, set_reason)
SELECT g.key, g.running, g.rate, g.per, g.running, g.rate, g.per, g.source, '', ''
FROM json_to_recordset(%(rows)s::json)
     AS g(key text, running int, rate int, per float8, source text)
ORDER BY g.key
ON CONFLICT (key) DO UPDATE
SET code_running = excluded.running, code_rate = excluded.rate, code_per = excluded.per,
    source = excluded.source,
    running = CASE WHEN l.set_by = '' THEN excluded.running ELSE l.running END,
    rate = CASE WHEN l.set_by = '' THEN excluded.rate ELSE l.rate END,
    per = CASE WHEN l.set_by = '' THEN excluded.per ELSE l.per END
WHERE (l.code_running, l.code_rate, l.code_per, l.source)
      IS DISTINCT FROM (excluded.running, excluded.rate, excluded.per, excluded.source)
