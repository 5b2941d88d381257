-- Ends every session that bears one of these names. Caller: Storage.end_sessions.
-- The same role may end its own sessions. Returns the sessions found, ended or still ending.
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name = ANY(%(names)s::text[]) AND pid <> pg_backend_pid()
