-- Makes all statements of this transaction see one moment. Caller: Storage.hold_rolling.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
