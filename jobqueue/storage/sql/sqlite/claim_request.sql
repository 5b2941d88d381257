-- Makes the row of an idempotency key, or nothing if there is one. Caller: Storage.claim_request.
-- Index: jobqueue_idempotencykey_request.
INSERT INTO jobqueue_idempotencykey (caller, route, key, fingerprint, created_at, expires_at)
VALUES (%(caller)s, %(route)s, %(key)s, %(fingerprint)s, %(now)s, %(until)s)
ON CONFLICT (caller, route, key) DO NOTHING
RETURNING id
