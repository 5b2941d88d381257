-- When the server started. Caller: Storage.server_started_at (was it restarted meanwhile?).
SELECT pg_postmaster_start_time()
