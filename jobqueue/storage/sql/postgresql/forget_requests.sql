-- Deletes requests whose jobs have ended or are gone. Caller: Storage.forget_requests (a sweep).
-- Only old ones: one that was renewed while this waits for its row is kept by the re-check of its
-- time, whatever the job's state was when this began.
DELETE FROM jobqueue_cancelrequest AS r
WHERE r.requested_at < coalesce(%(now)s::timestamptz, statement_timestamp())
                       - make_interval(secs => %(age)s::float8)
  AND coalesce((SELECT j.state FROM jobqueue_job AS j WHERE j.id = r.job_id), 'gone')
      IN ('succeeded', 'dead', 'cancelled', 'gone')
RETURNING r.job_id
