-- Dead letters by the error that killed them, as far as a limit. Caller: Storage.dead_by_error.
-- Index: jobqueue_job_error.
SELECT f.value,
       (SELECT count(*) FROM (SELECT 1 FROM jobqueue_job
                              WHERE state = 'dead' AND error_fingerprint = f.value
                              ORDER BY id LIMIT %(limit)s))
FROM json_each(%(fingerprints)s) AS f
