-- Writes a rollup as its sums are now. Caller: Storage.write_rollups. Index: jobqueue_rollup_key.
INSERT INTO jobqueue_rollup (seconds, kind, at, queue, name, succeeded, failed, timed_out, lost,
                             snoozed, cancelled, wait_seconds, run_seconds, waits, runs)
VALUES (%(seconds)s, %(kind)s, %(at)s, %(queue)s, %(name)s, %(succeeded)s, %(failed)s,
        %(timed_out)s, %(lost)s, %(snoozed)s, %(cancelled)s, %(wait_seconds)s, %(run_seconds)s,
        %(waits)s, %(runs)s)
ON CONFLICT (seconds, kind, at, queue, name) DO UPDATE
SET succeeded = excluded.succeeded, failed = excluded.failed, timed_out = excluded.timed_out,
    lost = excluded.lost, snoozed = excluded.snoozed, cancelled = excluded.cancelled,
    wait_seconds = excluded.wait_seconds, run_seconds = excluded.run_seconds,
    waits = excluded.waits, runs = excluded.runs
