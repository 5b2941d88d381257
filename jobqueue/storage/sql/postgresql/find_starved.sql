-- The most urgent unique job that could have started a while ago and whose row somebody keeps locked:
-- enqueues that met it, one after the other, so that every claim and promotion passes it over.
-- Caller: Storage.find_starved (a worker with free slots, now and then). What nobody has ever locked
-- (xmax) is left alone; the locks taken to ask about the rest are gone with the statement.
-- everywhere: also what is due in queues without a ready job. Indexes: jobqueue_job_ready,
-- jobqueue_job_due.
WITH c AS (SELECT coalesce(%(now)s::timestamptz, statement_timestamp()) AS now),
waiting AS MATERIALIZED (
    SELECT w.id, w.queue, w.task, w.rank
    FROM c CROSS JOIN unnest(%(queues)s::text[]) AS q(name)
    CROSS JOIN LATERAL (
        SELECT id, queue, task, rank, run_at, alone, expires_at, unique_key, xmax AS locker
        FROM jobqueue_job
        WHERE state = 'ready' AND queue = q.name ORDER BY rank, id LIMIT %(window)s) AS w
    WHERE w.unique_key IS NOT NULL AND w.task = ANY(%(tasks)s::text[]) AND NOT w.alone
      AND w.locker <> '0'::xid
      AND w.run_at < c.now - make_interval(secs => %(patience)s::float8)
      AND (w.expires_at IS NULL OR w.expires_at > c.now)
      AND NOT EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = q.name AND p.paused)
    ORDER BY w.rank, w.id LIMIT %(limit)s
), due AS MATERIALIZED (
    SELECT d.id, d.queue, d.task, d.rank
    FROM (SELECT id, queue, task, rank, unique_key, alone, xmax AS locker FROM jobqueue_job
          WHERE state IN ('retrying', 'scheduled')
            AND run_at < (SELECT now FROM c) - make_interval(secs => %(patience)s::float8)
          ORDER BY run_at, id LIMIT %(window)s) AS d
    WHERE d.unique_key IS NOT NULL AND d.task = ANY(%(tasks)s::text[]) AND NOT d.alone
      AND d.locker <> '0'::xid
      AND (%(everywhere)s OR d.queue = ANY(%(queues)s::text[]))
      AND NOT EXISTS (SELECT FROM jobqueue_queue p WHERE p.name = d.queue AND p.paused)
    ORDER BY d.rank, d.id LIMIT %(limit)s
), candidates AS MATERIALIZED (
    SELECT * FROM waiting UNION ALL SELECT * FROM due
), free AS MATERIALIZED (
    SELECT id FROM jobqueue_job
    WHERE id = ANY(ARRAY(SELECT id FROM candidates)) FOR NO KEY UPDATE SKIP LOCKED
)
SELECT id, queue, task, rank FROM candidates
WHERE id NOT IN (SELECT id FROM free)
ORDER BY rank, id LIMIT 1
