-- Deletes starts that no longer count, of keys whose rows the transaction holds.
-- Caller: Storage.claim_limited. Index: jobqueue_limituse_part.
DELETE FROM jobqueue_limituse u
USING unnest(%(keys)s::text[], %(lengths)s::float8[]) AS g(key, length),
      (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
WHERE u.key = g.key AND u.last_at <= c.now - make_interval(secs => g.length * 60)
