-- Makes jobs ready that were blocked for an unknown task. Caller: Storage.admit_known.
-- Index: primary key; the plus keeps SQLite from reading every blocked job instead.
UPDATE jobqueue_job SET state = 'ready', reason = '', version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s))
  AND state = 'blocked' AND +reason = 'unknown task'
RETURNING queue
