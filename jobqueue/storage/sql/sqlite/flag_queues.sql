-- Marks the queues that have a limit, which is what a claim looks at. Caller: Storage.flag_queues.
INSERT INTO jobqueue_queue (name, paused, paused_by, paused_reason, limited)
SELECT substr(key, 7), 0, '', '', running IS NOT NULL OR rate IS NOT NULL
FROM jobqueue_limit WHERE key LIKE 'queue:%%'
ON CONFLICT (name) DO UPDATE SET limited = excluded.limited
