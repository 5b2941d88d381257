-- Sums up failures by minute, fingerprint and outcome, with the newest of each; the most frequent
-- ones if there are more than fit. Caller: Storage.tally_errors. Index: primary key.
WITH counted AS MATERIALIZED (
    SELECT date_bin('1 minute', a.finished_at, timestamptz '2000-01-01 00:00:00+00') AS minute,
           a.error_fingerprint AS fingerprint, a.outcome, count(*) AS count,
           min(a.finished_at) AS first_seen, max(a.finished_at) AS last_seen, max(a.id) AS newest
    FROM unnest(%(lows)s::bigint[], %(highs)s::bigint[]) AS s(low, high)
    JOIN jobqueue_attempt a ON a.id BETWEEN s.low AND s.high
    WHERE a.error_fingerprint <> '' AND a.outcome IN ('failed', 'timed_out', 'lost')
    GROUP BY 1, 2, 3
    ORDER BY count(*) DESC, max(a.id) DESC LIMIT %(limit)s
)
SELECT c.minute, c.fingerprint, c.outcome, c.count, c.first_seen, c.last_seen,
       a.error_class, left(a.error_message, 500), a.job_id, a.task, a.queue
FROM counted c JOIN jobqueue_attempt a ON a.id = c.newest
