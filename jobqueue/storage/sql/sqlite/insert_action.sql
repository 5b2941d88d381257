-- Writes down what a client did, in the transaction that did it. Caller: Storage.record_action.
INSERT INTO jobqueue_action (at, actor, surface, verb, job_id, target, count)
VALUES (%(now)s, %(actor)s, %(surface)s, %(verb)s, %(job_id)s, %(target)s, %(amount)s)
