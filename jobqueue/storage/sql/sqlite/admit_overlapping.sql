-- Lets jobs go on that waited for earlier ones of their schedule; found in the same transaction.
-- Caller: Storage.admit_overlapping. Index: primary key; the plus keeps SQLite from others.
UPDATE jobqueue_job
SET state = CASE WHEN run_at > %(now)s THEN 'scheduled' ELSE 'ready' END,
    reason = '', version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s))
  AND state = 'blocked' AND +reason = 'overlap'
RETURNING queue
