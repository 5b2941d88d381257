-- The database's clock. Caller: Storage.clock (operators' walks, status).
SELECT statement_timestamp()
