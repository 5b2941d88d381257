-- Lets jobs that have ended give up their unique keys, once their windows are over.
-- Caller: Storage.lapse_windows (an enqueue that met them). Index: primary key.
UPDATE jobqueue_job AS j SET unique_window_end = NULL, version = j.version + 1
WHERE j.id = ANY(ARRAY(
          SELECT id FROM jobqueue_job WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('cancelled', 'dead', 'succeeded')
          ORDER BY id FOR NO KEY UPDATE))
  AND j.state IN ('cancelled', 'dead', 'succeeded')
  AND j.unique_window_end <= coalesce(%(now)s::timestamptz, statement_timestamp())
