-- How many of the next attempts there are, and the last one's id. Caller: Storage.read_span.
-- Index: primary key.
SELECT count(*), max(id)
FROM (SELECT id FROM jobqueue_attempt WHERE id > %(after)s ORDER BY id LIMIT %(limit)s) AS fresh
