-- Sends a hint. Caller: Storage.notify, after the caller's commit: NOTIFY inside a transaction
-- takes a server-wide lock at commit. Not flushed to disk: a hint may be lost.
SELECT set_config('synchronous_commit', 'off', true), pg_notify(%(channel)s, %(payload)s)
