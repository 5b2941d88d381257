-- Writes down what a client did, in the transaction that did it. Caller: Storage.record_action.
INSERT INTO jobqueue_action (at, actor, surface, verb, job_id, target, count)
VALUES (statement_timestamp(), %(actor)s, %(surface)s, %(verb)s, %(job_id)s::uuid, %(target)s,
        %(amount)s)
