-- Transactions that sessions of workers have had open for long. Caller: Storage.open_transactions.
-- Sessions of other roles say nothing about themselves, unless ours may read all statistics.
SELECT substr(application_name, length(%(prefix)s) + 1), pid, coalesce(state, ''),
       extract(epoch FROM statement_timestamp() - xact_start)::float8
FROM pg_stat_activity
WHERE starts_with(application_name, %(prefix)s)
  AND length(application_name) = length(%(prefix)s) + 32 AND datname = current_database()
  AND xact_start < statement_timestamp() - make_interval(secs => %(seconds)s::float8)
ORDER BY xact_start LIMIT 20
