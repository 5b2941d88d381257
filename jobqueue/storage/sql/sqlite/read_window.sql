-- How many jobs a look at old ones has seen, the last of them, and since when the oldest is there.
-- Caller: Storage.find_old. Index: the primary key.
SELECT count(*), max(id), min(enqueued_at) FROM (
    SELECT id, enqueued_at FROM jobqueue_job WHERE id > %(after)s ORDER BY id LIMIT %(window)s)
