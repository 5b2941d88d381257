-- Attempts whose fence is not greater than that of the attempt before them.
-- Caller: Storage.audit_rows. Reads the attempts whole.
SELECT job_id, number, fence, fence_before
FROM (SELECT job_id, number, fence,
             lag(fence) OVER (PARTITION BY job_id ORDER BY number, id) AS fence_before
      FROM jobqueue_attempt) AS a
WHERE fence <= fence_before
ORDER BY job_id, number LIMIT %(limit)s
