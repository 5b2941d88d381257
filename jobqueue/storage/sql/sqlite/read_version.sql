-- The version of the library. Caller: Storage.database_settings (checks).
SELECT sqlite_version()
