-- Claims the rows found under the same write lock. Callers: Storage.claim_many, claim_alone.
-- Index: primary key. Only for a worker whose own row is alive.
UPDATE jobqueue_job
SET state = 'running', fence = fence + 1, worker = %(worker)s, claimed_at = %(now)s,
    deadline = strftime('%%Y-%%m-%%d %%H:%%M:%%f', %(now)s,
                        printf('+%%.3f seconds', timeout)) || '000',
    version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state = 'ready'
  AND EXISTS (SELECT 1 FROM jobqueue_worker k WHERE k.id = %(worker)s AND NOT k.dead)
RETURNING id, fence, worker, task, queue, backend, arguments, failures, max_attempts,
          suspicions, timeout, alone, claimed_at, rank, limit_key
