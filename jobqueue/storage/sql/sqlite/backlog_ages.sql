-- Since when the oldest ready job has waited, and the oldest due job has not been promoted.
-- Caller: Storage.backlog_ages.
SELECT (SELECT min(run_at) FROM jobqueue_job WHERE state = 'ready'),
       (SELECT min(run_at) FROM jobqueue_job
        WHERE state IN ('retrying', 'scheduled') AND run_at < %(now)s)
