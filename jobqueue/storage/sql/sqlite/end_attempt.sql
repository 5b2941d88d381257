-- Leads one running job to any other state than succeeded, under the whole guard.
-- Caller: Storage.end_many. due_rank: the due time in microseconds. Index: primary key.
UPDATE jobqueue_job
SET state = %(state)s, worker = NULL, claimed_at = NULL, deadline = NULL,
    finished_at = CASE WHEN %(state)s IN ('dead', 'cancelled') THEN %(now)s END,
    attempts = attempts + (%(outcome)s IS NOT NULL),
    failures = failures + %(charged)s,
    suspicions = suspicions + %(suspicion)s,
    alone = %(alone)s,
    run_at = coalesce(%(due)s, run_at),
    rank = CASE WHEN %(due_rank)s IS NULL THEN rank
                ELSE %(due_rank)s - CAST(round(priority * %(aging)s * 1000000.0) AS INTEGER) END,
    error_class = coalesce(%(error_class)s, error_class),
    error_message = coalesce(%(error_message)s, error_message),
    error_fingerprint = coalesce(%(error_fingerprint)s, error_fingerprint),
    reason = %(reason)s, version = version + 1
WHERE id = %(id)s AND state = 'running' AND fence = %(fence)s AND worker = %(worker)s
