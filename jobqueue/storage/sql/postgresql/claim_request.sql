-- Makes the row of an idempotency key, or nothing if there is one. Caller: Storage.claim_request.
-- Waits for a transaction that has made it and not ended. Index: jobqueue_idempotencykey_request.
INSERT INTO jobqueue_idempotencykey (caller, route, key, fingerprint, created_at, expires_at)
SELECT %(caller)s, %(route)s, %(key)s, %(fingerprint)s, c.now,
       c.now + make_interval(secs => %(keep)s::float8)
FROM (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now) AS c
ON CONFLICT (caller, route, key) DO NOTHING
RETURNING id
