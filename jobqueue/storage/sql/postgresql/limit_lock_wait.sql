-- Bounds every lock wait of the current transaction. Caller: Storage.begin_operation.
SELECT set_config('lock_timeout', %(milliseconds)s::text, true)
