-- Notes that jobs of keys with a rate have started, in the claim's transaction, whose locks keep
-- others from the same rows. Caller: Storage.claim_limited. Index: jobqueue_limituse_part.
INSERT INTO jobqueue_limituse AS u (key, part, used, last_at)
SELECT g.key, (floor(extract(epoch FROM c.now) / g.length) * g.length * 1000000)::bigint, g.used, c.now
FROM unnest(%(keys)s::text[], %(used)s::int[], %(lengths)s::float8[]) AS g(key, used, length),
     (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
ON CONFLICT (key, part) DO UPDATE SET used = u.used + excluded.used, last_at = excluded.last_at
