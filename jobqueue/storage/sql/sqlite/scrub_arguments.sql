-- Replaces the arguments of ended jobs by a mark. Caller: Storage.scrub_arguments.
UPDATE jobqueue_job SET arguments = %(scrubbed)s, version = version + 1
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND state IN ('succeeded', 'cancelled')
  AND finished_at < %(before)s
