-- Replication slots that nobody reads, and the log that the server keeps for each.
-- Caller: Storage.idle_slots.
SELECT slot_name,
       coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()
                                     ELSE pg_current_wal_lsn() END, restart_lsn), 0)::bigint,
       coalesce(wal_status, '')
FROM pg_replication_slots WHERE NOT active
ORDER BY 2 DESC LIMIT 10
