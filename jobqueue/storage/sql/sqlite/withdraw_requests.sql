-- Deletes requests to cancel. Callers: Storage.withdraw_requests, forget_requests.
DELETE FROM jobqueue_cancelrequest WHERE job_id IN (SELECT value FROM json_each(%(ids)s))
