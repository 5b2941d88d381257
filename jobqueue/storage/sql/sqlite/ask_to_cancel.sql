-- Leaves requests to cancel running jobs. Caller: Storage.ask_to_cancel (an operator).
INSERT INTO jobqueue_cancelrequest (job_id, requested_at, reason)
SELECT id, %(now)s, %(reason)s FROM jobqueue_job
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state = 'running'
ON CONFLICT (job_id) DO UPDATE SET requested_at = excluded.requested_at, reason = excluded.reason
RETURNING job_id
