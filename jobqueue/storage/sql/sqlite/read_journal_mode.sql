-- A setting of this connection. Caller: Storage.database_settings (checks).
PRAGMA journal_mode
