-- Deletes requests to cancel. Caller: Storage.withdraw_requests (before a job is requeued).
DELETE FROM jobqueue_cancelrequest WHERE job_id = ANY(%(ids)s::uuid[])
