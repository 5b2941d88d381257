-- The attempt row of a run that an operator ends, first of two statements.
-- Caller: Storage.force_cancel. The attempt is on the books as cancelled.
INSERT INTO jobqueue_attempt (job_id, number, fence, worker, task, queue, outcome, charged,
                              due_at, started_at, finished_at, error_class, error_message,
                              error_fingerprint, traceback)
SELECT id, attempts + 1, fence, worker, task, queue, 'cancelled', 0,
       max(run_at, enqueued_at), claimed_at, %(now)s,
       '', %(reason)s, '', ''
FROM jobqueue_job
WHERE id = %(id)s AND state = 'running' AND fence = %(fence)s AND worker = %(worker)s
