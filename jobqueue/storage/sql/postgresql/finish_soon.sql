-- Rows, not a statement: all of a batch to finish, for an UPDATE that locks them itself; to look up
-- and lock each before costs a fifteenth of a finish. A part of finish_jobs.sql. Waits for others'
-- locks for a moment only, and then fails: the caller goes on with finish_free.sql.
SELECT id FROM given, (SELECT set_config('lock_timeout', %(patience)s::text, true)) AS patience
