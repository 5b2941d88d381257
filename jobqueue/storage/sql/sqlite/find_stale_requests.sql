-- Old requests whose jobs have ended or are gone. Caller: Storage.forget_requests.
SELECT r.job_id FROM jobqueue_cancelrequest AS r
WHERE r.requested_at < %(before)s
  AND coalesce((SELECT j.state FROM jobqueue_job AS j WHERE j.id = r.job_id), 'gone')
      IN ('succeeded', 'dead', 'cancelled', 'gone')
