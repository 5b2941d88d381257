-- Counts the jobs of a schedule that have not ended, up to a number. Caller:
-- Storage.live_of_schedule (a tick, after it has locked the schedule). Index: jobqueue_job_schedule.
SELECT count(*) FROM (
    SELECT 1 FROM jobqueue_job
    WHERE schedule = %(name)s AND schedule > ''
      AND state IN ('blocked', 'ready', 'retrying', 'running', 'scheduled')
    LIMIT %(most)s) AS live
