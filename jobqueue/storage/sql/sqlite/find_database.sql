-- The file of the database, empty for one in memory. Caller: SQLiteWorkers._database_file.
SELECT file FROM pragma_database_list WHERE name = 'main'
