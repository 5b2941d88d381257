-- Jobs that waited for earlier ones of their schedule and may go on, without a lock. Caller:
-- Storage.admit_overlapping. Of each schedule the first that waits, once nothing else of it lives.
-- Indexes: jobqueue_job_blocked, jobqueue_job_schedule.
SELECT w.id FROM jobqueue_job AS w
WHERE w.state = 'blocked' AND w.reason = 'overlap'
  AND NOT EXISTS (
      SELECT 1 FROM jobqueue_job AS o
      WHERE o.schedule = w.schedule AND o.schedule > '' AND o.id <> w.id
        AND o.state IN ('blocked', 'ready', 'retrying', 'running', 'scheduled')
        AND (o.state <> 'blocked' OR o.reason <> 'overlap'
             OR (o.enqueued_at, o.id) < (w.enqueued_at, w.id)))
ORDER BY w.id LIMIT %(limit)s
