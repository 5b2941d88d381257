-- Notes how far the counting has come, in its transaction. Caller: Storage.save_rolling.
UPDATE jobqueue_rolling
SET attempt_id = %(attempt_id)s, gaps = %(gaps)s::json,
    rolled_at = coalesce(%(rolled_at)s::timestamptz, rolled_at),
    not_before = %(not_before)s::timestamptz
WHERE id = 1
