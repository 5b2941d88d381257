-- Marks the queues that have a limit, which is what a claim looks at. Callers: Storage.flag_queues
-- (in the transaction that changed limits).
INSERT INTO jobqueue_queue AS q (name, paused, paused_by, paused_reason, limited)
SELECT substr(l.key, 7), false, '', '', l.running IS NOT NULL OR l.rate IS NOT NULL
FROM jobqueue_limit l WHERE l.key LIKE 'queue:%%' ORDER BY l.key
ON CONFLICT (name) DO UPDATE SET limited = excluded.limited WHERE q.limited <> excluded.limited
