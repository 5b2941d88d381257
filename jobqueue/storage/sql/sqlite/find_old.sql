-- A small batch of jobs that ended long ago, without a lock. Caller: Storage.prune.
-- Walks the primary key: ids grow with the time of enqueue, so the oldest come first.
SELECT id FROM jobqueue_job
WHERE state = %(state)s AND finished_at < %(before)s
ORDER BY id LIMIT %(limit)s
