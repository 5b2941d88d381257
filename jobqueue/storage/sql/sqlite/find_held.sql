-- Whether a job still belongs to this claim. Callers: Storage.verdict, record_step.
SELECT 1 FROM jobqueue_job
WHERE id = %(id)s AND state = 'running' AND fence = %(fence)s AND worker = %(worker)s
