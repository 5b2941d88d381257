-- A clause, not a statement: ends a session that stays idle in this transaction. A part of
-- finish_one.sql where its COMMIT comes in a message of its own.
RETURNING set_config('idle_in_transaction_session_timeout', %(idle_timeout)s::text, true)
