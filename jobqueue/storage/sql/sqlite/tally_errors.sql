-- Sums up failures by minute, fingerprint and outcome, with the newest of each; the most frequent
-- ones if there are more than fit. Caller: Storage.tally_errors. Index: primary key.
SELECT c.minute, c.fingerprint, c.outcome, c.count, c.first_seen, c.last_seen,
       a.error_class, substr(a.error_message, 1, 500), a.job_id, a.task, a.queue
FROM (SELECT substr(finished_at, 1, 16) || ':00' AS minute, error_fingerprint AS fingerprint,
             outcome, count(*) AS count, min(finished_at) AS first_seen,
             max(finished_at) AS last_seen, max(id) AS newest
      FROM jobqueue_attempt
      WHERE id BETWEEN %(low)s AND %(high)s AND error_fingerprint <> ''
        AND outcome IN ('failed', 'timed_out', 'lost')
      GROUP BY 1, 2, 3
      ORDER BY 4 DESC, 7 DESC LIMIT %(limit)s) AS c
CROSS JOIN jobqueue_attempt a ON a.id = c.newest
