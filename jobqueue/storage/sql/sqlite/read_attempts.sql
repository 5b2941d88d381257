-- Attempts as counting needs them. Caller: Storage.tally_attempts. Index: primary key.
SELECT queue, task, worker, outcome, due_at, started_at, finished_at
FROM jobqueue_attempt WHERE id BETWEEN %(low)s AND %(high)s
