-- Settings that durability and isolation depend on. Caller: Storage.database_settings (checks).
SELECT name, setting FROM pg_settings
WHERE name IN ('synchronous_commit', 'fsync', 'full_page_writes', 'default_transaction_isolation',
               'idle_in_transaction_session_timeout', 'statement_timeout',
               'transaction_timeout', 'server_version')
