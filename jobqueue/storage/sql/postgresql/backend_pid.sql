-- The pid of the session that really answers. Caller: Storage.is_direct.
SELECT pg_backend_pid()
