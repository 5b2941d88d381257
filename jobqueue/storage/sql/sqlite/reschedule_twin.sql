-- Gives a waiting job another time to run, and expiry. Caller: Storage.reschedule_twins.
-- What is blocked stays so, unless it is not due any more and waits for no earlier job of its schedule.
-- ranked: the due time, or now if that is later, in microseconds. Index: primary key.
UPDATE jobqueue_job
SET state = CASE WHEN %(due)s <= %(now)s THEN CASE state WHEN 'blocked' THEN state ELSE 'ready' END
                 WHEN state = 'retrying' OR reason = 'overlap' THEN state
                 ELSE 'scheduled' END,
    reason = CASE WHEN state = 'blocked' AND (%(due)s <= %(now)s OR reason = 'overlap')
                  THEN reason ELSE '' END,
    run_at = %(due)s,
    rank = %(ranked)s - CAST(round(priority * %(aging)s * 1000000.0) AS INTEGER),
    expires_at = %(expires_at)s, version = version + 1
WHERE id = %(twin)s AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
RETURNING id, state, run_at, enqueued_at
