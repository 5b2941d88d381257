-- Succeeded jobs whose success was not written by the last claim, and attempts with a fence that
-- their job has never given out. Caller: Storage.audit_rows. Reads both tables whole.
SELECT j.id AS job_id, j.fence AS fence, a.fence AS attempt_fence, a.outcome AS outcome
FROM jobqueue_attempt a JOIN jobqueue_job j ON j.id = a.job_id
WHERE a.fence > j.fence
   OR (a.outcome = 'succeeded' AND j.state = 'succeeded' AND a.fence <> j.fence)
ORDER BY j.id, a.number LIMIT %(limit)s
