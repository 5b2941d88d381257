-- Makes the transaction that has just begun READ COMMITTED, whatever the project's default.
-- Caller: Storage.begin_operation, before any other statement.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED
