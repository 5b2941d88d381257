-- The attempt row of a run that ends, under the whole guard; first of two statements, because the
-- second forgets when the job was claimed. Callers: Storage.finish_one, finish_many, end_many.
-- Index: primary key.
INSERT INTO jobqueue_attempt (job_id, number, fence, worker, task, queue, outcome, charged,
                              due_at, started_at, finished_at, error_class, error_message,
                              error_fingerprint, traceback)
SELECT id, attempts + 1, fence, worker, task, queue, %(outcome)s, %(charged)s,
       max(run_at, enqueued_at), coalesce(%(started_at)s, claimed_at), %(finished_at)s,
       coalesce(%(error_class)s, ''), coalesce(%(error_message)s, ''),
       coalesce(%(error_fingerprint)s, ''), coalesce(%(traceback)s, '')
FROM jobqueue_job
WHERE id = %(id)s AND state = 'running' AND fence = %(fence)s AND worker = %(worker)s
