-- Gives a waiting job other arguments, priority and expiry. Caller: Storage.replace_twins.
-- A job keeps its place among those of its new priority; parked for the limit of a key that it no
-- longer has, it is ready. Index: primary key.
UPDATE jobqueue_job
SET arguments = %(arguments)s, priority = %(priority)s, limit_key = %(limit_key)s,
    state = CASE WHEN state = 'blocked' AND reason = 'limit'
                      AND limit_key IS NOT %(limit_key)s THEN 'ready' ELSE state END,
    reason = CASE WHEN state = 'blocked' AND reason = 'limit'
                       AND limit_key IS NOT %(limit_key)s THEN '' ELSE reason END,
    rank = rank + CAST(round((priority - %(priority)s) * %(aging)s * 1000000.0) AS INTEGER),
    expires_at = %(expires_at)s, version = version + 1
WHERE id = %(twin)s AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
RETURNING id, state, run_at, enqueued_at
