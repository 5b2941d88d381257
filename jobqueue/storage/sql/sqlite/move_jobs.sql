-- Puts waiting jobs into another queue; they keep their rank. Caller: Storage.move_many.
UPDATE jobqueue_job SET queue = %(queue)s, version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s))
  AND state IN ('scheduled', 'ready', 'blocked', 'retrying')
RETURNING id
