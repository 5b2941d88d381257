-- The rollups with given keys. Caller: Storage.read_rollups. Index: jobqueue_rollup_key.
SELECT r.seconds, r.kind, r.at, r.queue, r.name, r.succeeded, r.failed, r.timed_out, r.lost,
       r.snoozed, r.cancelled, r.wait_seconds, r.run_seconds, r.waits::text, r.runs::text
FROM json_to_recordset(%(keys)s::json) AS k(
         seconds integer, kind text, at timestamptz, queue text, name text)
JOIN jobqueue_rollup r USING (seconds, kind, at, queue, name)
