-- Leaves requests to cancel running jobs. Caller: Storage.ask_to_cancel (an operator).
-- The jobs' rows are read, not locked: one that ends meanwhile leaves a request that nobody needs.
INSERT INTO jobqueue_cancelrequest (job_id, requested_at, reason)
SELECT id, statement_timestamp(), %(reason)s FROM jobqueue_job
WHERE id = ANY(%(ids)s::uuid[]) AND state = 'running'
ORDER BY id
ON CONFLICT (job_id) DO UPDATE SET requested_at = excluded.requested_at, reason = excluded.reason
RETURNING job_id
