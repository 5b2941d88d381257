-- Prepares a transaction that has just begun, in one round trip: READ COMMITTED whatever the
-- project's default, and milliseconds for any wait for a lock and for the client's next statement.
-- Caller: Storage.begin_request, before any other statement. SET takes no parameters.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = {lock_wait};
SET LOCAL idle_in_transaction_session_timeout = {idle}
