-- Finishes one job inside its own transaction, with its attempt row. Caller: Storage.finish_one.
-- The guard fails on the server: matching no row makes an id that is none, so that a COMMIT already
-- queued behind this statement can only roll back (seen: a pipelined COMMIT kept a zombie's effects).
-- The idle time-out is local to the transaction: a process frozen before COMMIT loses its session.
-- It costs a tenth of the statement, and is left out where COMMIT comes in the same message.
-- The state is compared in a way that no partial index answers: by the worker's own index this
-- would read every run that it has ended while something holds the horizon.
WITH guarded AS (
    UPDATE jobqueue_job AS j
    SET state = 'succeeded', worker = NULL, claimed_at = NULL, deadline = NULL,
        finished_at = statement_timestamp(), result = %(result)s::json,
        attempts = j.attempts + 1, suspicions = 0, alone = false,
        error_class = '', error_message = '', error_fingerprint = '', reason = '',
        version = j.version + 1
    WHERE j.id = %(id)s::uuid AND j.state || '' = 'running' AND j.fence = %(fence)s::bigint
      AND j.worker = %(worker)s::uuid
    RETURNING j.id, j.fence, j.attempts, j.task, j.queue,
              greatest(j.run_at, j.enqueued_at) AS due_at
)
INSERT INTO jobqueue_attempt (job_id, number, fence, worker, task, queue, outcome, charged, due_at,
                              started_at, finished_at, error_class, error_message,
                              error_fingerprint, traceback)
SELECT CASE WHEN g.id IS NULL THEN concat('jobqueue_lease_lost', g.id)::uuid ELSE g.id END,
       g.attempts, g.fence, %(worker)s::uuid, g.task, g.queue, 'succeeded', false, g.due_at,
       statement_timestamp() - make_interval(secs => %(started_ago)s::float8),
       statement_timestamp(), '', '', '', ''
FROM (SELECT) AS one LEFT JOIN guarded AS g ON true
{limit_idle}
