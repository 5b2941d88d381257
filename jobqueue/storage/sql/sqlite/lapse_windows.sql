-- Lets jobs that have ended give up their unique keys, once their windows are over.
-- Caller: Storage.lapse_windows (an enqueue that met them). Index: primary key.
UPDATE jobqueue_job SET unique_window_end = NULL, version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state IN ('cancelled', 'dead', 'succeeded')
  AND unique_window_end <= %(now)s
