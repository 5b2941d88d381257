-- The rollup with a given key. Caller: Storage.read_rollups. Index: jobqueue_rollup_key.
SELECT succeeded, failed, timed_out, lost, snoozed, cancelled, wait_seconds, run_seconds, waits,
       runs
FROM jobqueue_rollup
WHERE seconds = %(seconds)s AND kind = %(kind)s AND at = %(at)s AND queue = %(queue)s
  AND name = %(name)s
