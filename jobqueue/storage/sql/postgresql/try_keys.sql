-- Locks keys until the transaction ends, and returns those it got: a busy key is passed over, never
-- waited for. Caller: Storage.claim_limited, as the first statement of its transaction.
-- A process that freezes here loses its session, and with it the keys.
SELECT k.key
FROM unnest(%(keys)s::text[]) AS k(key),
     (SELECT set_config('idle_in_transaction_session_timeout', coalesce(
        %(idle_timeout)s, current_setting('idle_in_transaction_session_timeout')), true)) AS limited
WHERE pg_try_advisory_xact_lock(%(space)s, hashtext(k.key))
