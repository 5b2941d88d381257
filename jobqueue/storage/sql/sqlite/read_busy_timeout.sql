-- A setting of this connection. Caller: Storage.database_settings (checks).
PRAGMA busy_timeout
