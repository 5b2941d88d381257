-- Ends one session of this database and role by its backend pid, if it is still there.
-- Caller: Storage.end_session (an unknown COMMIT).
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE pid = %(pid)s::int AND pid <> pg_backend_pid() AND usename = current_user
  AND application_name = %(name)s
