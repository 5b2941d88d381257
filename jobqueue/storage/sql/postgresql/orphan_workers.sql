-- Identities that hold running jobs and have been dead for a while, or have no row at all: a pruned
-- row hides nothing. With what was found about their death: whoever found it was interrupted.
-- Caller: Storage.orphan_workers (the reaper). Index: jobqueue_job_running, jumped.
WITH RECURSIVE holders AS (
    (SELECT worker FROM jobqueue_job WHERE state = 'running' ORDER BY worker LIMIT 1)
    UNION ALL
    SELECT (SELECT j.worker FROM jobqueue_job j
            WHERE j.state = 'running' AND j.worker > holders.worker ORDER BY j.worker LIMIT 1)
    FROM holders WHERE holders.worker IS NOT NULL
)
SELECT h.worker, w.dead_reason, w.blame, w.direct
FROM holders h LEFT JOIN jobqueue_worker w ON w.id = h.worker
WHERE h.worker IS NOT NULL
  AND (w.id IS NULL
       OR w.dead AND w.dead_at <= statement_timestamp() - make_interval(secs => %(patience)s::float8))
