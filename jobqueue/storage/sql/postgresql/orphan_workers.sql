-- Identities that hold running jobs and have been dead for a while, or have no row at all: a pruned
-- row hides nothing. Caller: Storage.orphan_workers (the reaper). Index: jobqueue_job_running, jumped.
WITH RECURSIVE holders AS (
    (SELECT worker FROM jobqueue_job WHERE state = 'running' ORDER BY worker LIMIT 1)
    UNION ALL
    SELECT (SELECT j.worker FROM jobqueue_job j
            WHERE j.state = 'running' AND j.worker > holders.worker ORDER BY j.worker LIMIT 1)
    FROM holders WHERE holders.worker IS NOT NULL
)
SELECT h.worker FROM holders h
WHERE h.worker IS NOT NULL
  AND NOT EXISTS (
      SELECT FROM jobqueue_worker w
      WHERE w.id = h.worker
        AND (NOT w.dead
             OR w.dead_at > statement_timestamp() - make_interval(secs => %(patience)s::float8)))
