-- Finishes one job under the whole guard; no row returned means lease lost.
-- Callers: Storage.finish_one (in the job's own transaction), finish_many. Index: primary key.
UPDATE jobqueue_job
SET state = 'succeeded', worker = NULL, claimed_at = NULL, deadline = NULL,
    finished_at = %(finished_at)s, result = %(result)s, attempts = attempts + 1,
    suspicions = 0, alone = 0, error_class = '', error_message = '', error_fingerprint = '',
    reason = '', version = version + 1
WHERE id = %(id)s AND state = 'running' AND fence = %(fence)s AND worker = %(worker)s
RETURNING id
