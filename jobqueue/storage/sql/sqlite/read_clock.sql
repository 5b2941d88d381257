-- The time in UTC, in milliseconds. Caller: SQLiteStatements._clock, once a method.
SELECT strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')
