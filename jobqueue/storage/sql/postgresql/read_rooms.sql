-- How many more jobs of each key may start now (NULL: any number), how long one part of its period
-- is (NULL: it has no rate), and in how many seconds the oldest start in it no longer counts.
-- Caller: Storage.read_rooms; inside a claim only after a statement that locked the keys: in one
-- statement with the lock it would count as of before the wait (seen: 5 of 3 running).
-- The numbers are those of the very key, else of its name; a key without any counts as 1 at a time.
-- Index: jobqueue_job_limit; for a whole queue jobqueue_job_running (the running set is small).
SELECT k.key,
       least(n.running - CASE
                 WHEN n.running IS NULL THEN NULL
                 WHEN k.key LIKE 'queue:%%' THEN
                     (SELECT count(*) FROM jobqueue_job j
                      WHERE j.state = 'running' AND j.queue = substr(k.key, 7))
                 ELSE (SELECT count(*) FROM jobqueue_job j
                       WHERE j.state = 'running' AND j.limit_key = k.key) END,
             n.rate - coalesce(u.used, 0)),
       n.per / 60,
       extract(epoch FROM u.oldest - c.now)::float8 + n.per
FROM unnest(%(keys)s::text[]) AS k(key)
CROSS JOIN (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
LEFT JOIN LATERAL (
    SELECT l.running, l.rate, l.per, l.key = k.key AS is_its_own FROM jobqueue_limit l
    WHERE l.key IN (k.key, split_part(k.key, ':', 1))
    UNION ALL SELECT 1, NULL, NULL, NULL WHERE k.key NOT LIKE 'queue:%%'
    ORDER BY is_its_own DESC NULLS LAST LIMIT 1
) AS n ON true
LEFT JOIN LATERAL (
    SELECT sum(used)::bigint AS used, min(last_at) AS oldest FROM jobqueue_limituse
    WHERE key = k.key AND last_at > c.now - make_interval(secs => n.per)
) AS u ON n.rate IS NOT NULL
