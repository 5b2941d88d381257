-- What the server's statistics say of the table of jobs. Caller: Storage.table_state.
SELECT n_live_tup, n_dead_tup,
       extract(epoch FROM statement_timestamp() - greatest(last_vacuum, last_autovacuum))::float8
FROM pg_stat_user_tables WHERE relid = 'jobqueue_job'::regclass
