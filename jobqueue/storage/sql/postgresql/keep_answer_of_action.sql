-- Writes the answer into a row that this transaction has made, and the Action row of what it
-- answers: the last statement of most requests. Caller: Storage.keep_answer. Index: primary key.
WITH action AS (
    INSERT INTO jobqueue_action (at, actor, surface, verb, job_id, target, count)
    VALUES (statement_timestamp(), %(actor)s, %(surface)s, %(verb)s, %(job_id)s::uuid, %(target)s,
            %(amount)s)
)
UPDATE jobqueue_idempotencykey
SET status = %(status)s, headers = %(headers)s::json, body = %(body)s
WHERE id = %(number)s
