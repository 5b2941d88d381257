-- Writes the answer into a row that this transaction has made. Caller: Storage.keep_answer.
-- Index: primary key.
UPDATE jobqueue_idempotencykey
SET status = %(status)s, headers = %(headers)s, body = %(body)s
WHERE id = %(number)s
