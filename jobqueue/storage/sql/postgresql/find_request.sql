-- What is kept under an idempotency key. Caller: Storage.find_request.
-- Index: jobqueue_idempotencykey_request.
SELECT fingerprint, status, headers::text, body FROM jobqueue_idempotencykey
WHERE caller = %(caller)s AND route = %(route)s AND key = %(key)s
