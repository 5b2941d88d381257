-- What became of some claims: the outcome of each whose end was committed, and whether the job is
-- still its own. Caller: Storage.verdicts, for what a batch did not match: was it locked, or lost?
-- A plain read: lock_job.sql is for those who must wait.
-- Indexes: primary key, jobqueue_attempt_job_fence.
SELECT g.id, g.fence, a.outcome,
       EXISTS (SELECT FROM jobqueue_job j
               WHERE j.id = g.id AND j.state || '' = 'running' AND j.fence = g.fence
                 AND j.worker = g.worker)
FROM unnest(%(ids)s::uuid[], %(fences)s::bigint[], %(workers)s::uuid[]) AS g(id, fence, worker)
LEFT JOIN jobqueue_attempt a
       ON a.job_id = g.id AND a.fence = g.fence AND a.worker = g.worker
