-- Makes the one row that counting needs, if it is not there. Caller: Storage.hold_rolling.
INSERT INTO jobqueue_rolling (id, attempt_id, gaps) VALUES (1, 0, '[]')
ON CONFLICT (id) DO NOTHING
RETURNING attempt_id
