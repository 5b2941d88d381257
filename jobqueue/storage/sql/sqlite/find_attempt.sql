-- The outcome of one claim, if its end was committed. Caller: Storage.verdict.
-- Index: jobqueue_attempt_job_fence.
SELECT outcome FROM jobqueue_attempt
WHERE job_id = %(id)s AND fence = %(fence)s AND worker = %(worker)s
