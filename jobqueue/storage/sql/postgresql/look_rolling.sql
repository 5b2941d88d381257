-- Whether attempts wait to be counted, or gaps to be looked at again, and it is time.
-- Caller: Storage.has_uncounted (the scheduler, before it asks for the row). A time that is far
-- ahead was written before the clock stepped back. Index: primary keys.
SELECT coalesce((SELECT max(id) FROM jobqueue_attempt), 0) > coalesce(r.attempt_id, 0)
       OR coalesce(r.gaps::text, '[]') <> '[]',
       r.id IS NOT NULL
FROM (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
LEFT JOIN jobqueue_rolling r ON r.id = 1
WHERE %(early)s OR r.not_before IS NULL OR r.not_before <= c.now
      OR r.not_before > c.now + interval '10 minutes'
