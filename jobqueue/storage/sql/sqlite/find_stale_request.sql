-- Whether there is an idempotency key whose time is over. Caller: Storage.prune_requests.
-- Index: jobqueue_idempotencykey_expiry.
SELECT 1 FROM jobqueue_idempotencykey WHERE expires_at < %(now)s LIMIT 1
