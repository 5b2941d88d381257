-- Deletes idempotency keys whose time is over. Caller: Storage.prune_requests.
-- Index: jobqueue_idempotencykey_expiry.
DELETE FROM jobqueue_idempotencykey WHERE id IN (
    SELECT id FROM jobqueue_idempotencykey
    WHERE expires_at < coalesce(%(now)s::timestamptz, statement_timestamp())
    ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) RETURNING id
