-- Jobs whose attempts are not numbered exactly from 1 to the job's own count.
-- Caller: Storage.audit_rows. Reads both tables whole.
SELECT j.id AS job_id, j.attempts AS attempts, coalesce(a.found, 0) AS found,
       a.lowest AS lowest, a.highest AS highest
FROM jobqueue_job j
LEFT JOIN (SELECT job_id, count(*) AS found, count(DISTINCT number) AS numbers,
                  min(number) AS lowest, max(number) AS highest
           FROM jobqueue_attempt GROUP BY job_id) AS a ON a.job_id = j.id
WHERE coalesce(a.found, 0) <> j.attempts
   OR (a.found > 0 AND (a.numbers <> a.found OR a.lowest <> 1 OR a.highest <> a.found))
ORDER BY j.id LIMIT %(limit)s
