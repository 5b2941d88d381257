-- Makes the one row that counting needs, once, in a transaction of its own: whoever comes meanwhile
-- would wait for the one that makes it. Caller: Storage.has_uncounted.
INSERT INTO jobqueue_rolling (id, attempt_id, gaps) VALUES (1, 0, '[]')
ON CONFLICT (id) DO NOTHING
