-- Ends a running job as cancelled and raises its fence: its worker is refused from now on.
-- Caller: Storage.force_cancel (an operator). The attempt is on the books as cancelled.
-- Index: primary key; why no other: see finish_one.sql.
WITH locked AS MATERIALIZED (
    SELECT id, fence, worker, claimed_at, greatest(run_at, enqueued_at) AS due_at FROM jobqueue_job
    WHERE id = %(id)s::uuid AND state || '' = 'running' AND fence = %(fence)s::bigint
      AND worker = %(worker)s::uuid
    FOR NO KEY UPDATE NOWAIT
), guarded AS (
    UPDATE jobqueue_job AS j
    SET state = 'cancelled', fence = j.fence + 1, worker = NULL, claimed_at = NULL,
        deadline = NULL, finished_at = statement_timestamp(), attempts = j.attempts + 1,
        reason = %(reason)s, version = j.version + 1
    FROM locked l
    WHERE j.id = l.id AND j.state || '' = 'running' AND j.fence = l.fence AND j.worker = l.worker
    RETURNING j.id, j.attempts, j.task, j.queue, l.fence, l.worker, l.claimed_at, l.due_at
)
INSERT INTO jobqueue_attempt (job_id, number, fence, worker, task, queue, outcome, charged,
                              due_at, started_at, finished_at, error_class, error_message,
                              error_fingerprint, traceback)
SELECT id, attempts, fence, worker, task, queue, 'cancelled', false, due_at, claimed_at,
       statement_timestamp(), '', %(reason)s, '', ''
FROM guarded
RETURNING job_id
