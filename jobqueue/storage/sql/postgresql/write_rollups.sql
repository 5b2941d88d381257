-- Writes rollups as their sums are now; nobody else writes them meanwhile.
-- Caller: Storage.write_rollups. Index: jobqueue_rollup_key.
INSERT INTO jobqueue_rollup (seconds, kind, at, queue, name, succeeded, failed, timed_out, lost,
                             snoozed, cancelled, wait_seconds, run_seconds, waits, runs)
SELECT seconds, kind, at, queue, name, succeeded, failed, timed_out, lost, snoozed, cancelled,
       wait_seconds, run_seconds, waits::json, runs::json
FROM json_to_recordset(%(rows)s::json) AS r(
         seconds integer, kind text, at timestamptz, queue text, name text, succeeded bigint,
         failed bigint, timed_out bigint, lost bigint, snoozed bigint, cancelled bigint,
         wait_seconds float8, run_seconds float8, waits text, runs text)
ON CONFLICT (seconds, kind, at, queue, name) DO UPDATE
SET succeeded = excluded.succeeded, failed = excluded.failed, timed_out = excluded.timed_out,
    lost = excluded.lost, snoozed = excluded.snoozed, cancelled = excluded.cancelled,
    wait_seconds = excluded.wait_seconds, run_seconds = excluded.run_seconds,
    waits = excluded.waits, runs = excluded.runs
