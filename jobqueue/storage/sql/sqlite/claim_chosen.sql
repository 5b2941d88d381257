-- Claims the jobs that were chosen, if they are still as they were then. Caller:
-- Storage.claim_limited, in the transaction that counted. Index: primary key.
UPDATE jobqueue_job
SET state = 'running', fence = fence + 1, worker = %(worker)s, claimed_at = %(now)s,
    deadline = strftime('%%Y-%%m-%%d %%H:%%M:%%f', %(now)s,
                        printf('+%%.3f seconds', timeout)) || '000',
    version = version + 1
WHERE id IN (SELECT json_extract(value, '$.id') FROM json_each(%(rows)s)) AND state = 'ready'
  AND (expires_at IS NULL OR expires_at > %(now)s)
  AND EXISTS (SELECT 1 FROM json_each(%(rows)s) g
              WHERE json_extract(g.value, '$.id') = jobqueue_job.id
                AND json_extract(g.value, '$.queue') = jobqueue_job.queue
                AND json_extract(g.value, '$.key') IS jobqueue_job.limit_key)
  AND NOT EXISTS (SELECT 1 FROM jobqueue_queue p WHERE p.name = jobqueue_job.queue AND p.paused)
  AND EXISTS (SELECT 1 FROM jobqueue_worker k WHERE k.id = %(worker)s AND NOT k.dead)
RETURNING id, fence, worker, task, queue, backend, arguments, failures, max_attempts,
          suspicions, timeout, alone, claimed_at, rank, limit_key
