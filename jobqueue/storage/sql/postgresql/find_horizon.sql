-- Who holds the oldest xmin horizon that reaches this database: no dead row newer than it can be
-- removed, so claims slow down. Caller: Storage.horizon_holder (status).
-- Columns: kind, pid, name, state, seconds since its transaction began, transactions behind.
SELECT kind, pid, name, state, seconds, transactions
FROM (
    SELECT 'session' AS kind, pid, coalesce(nullif(application_name, ''), usename, '') AS name,
           coalesce(state, '') AS state,
           extract(epoch FROM statement_timestamp() - xact_start)::float8 AS seconds,
           age(backend_xmin)::bigint AS transactions
    FROM pg_stat_activity
    WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database()
    UNION ALL
    SELECT 'prepared transaction', NULL, gid, 'prepared',
           extract(epoch FROM statement_timestamp() - prepared)::float8, age(transaction)::bigint
    FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT 'standby', pid, application_name, coalesce(state, ''), NULL, age(backend_xmin)::bigint
    FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
    UNION ALL
    SELECT 'replication slot', active_pid, slot_name,
           CASE WHEN active THEN 'active' ELSE 'inactive' END, NULL, age(xmin)::bigint
    FROM pg_replication_slots WHERE xmin IS NOT NULL
) AS holders
ORDER BY transactions DESC, seconds DESC NULLS LAST LIMIT 1
