-- Dead letters by the error that killed them, as far as a limit. Caller: Storage.dead_by_error.
-- Index: jobqueue_job_error.
SELECT f.fingerprint, d.jobs
FROM unnest(%(fingerprints)s::text[]) AS f(fingerprint)
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (SELECT FROM jobqueue_job WHERE state = 'dead' AND error_fingerprint = f.fingerprint
          ORDER BY id LIMIT %(limit)s) AS head
) AS d
