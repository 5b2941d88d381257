-- Locks the waiting ones of these jobs until the caller's transaction ends, so that they cannot
-- start before what it wrote can be seen. Caller: Storage.lock_twins (an enqueue that met them).
-- {strength}: SHARE, or NO KEY UPDATE for one that could have started a while ago: overlapping
-- FOR SHARE would keep a claim away for ever (seen: 600 s). Index: primary key.
SELECT id FROM jobqueue_job
WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
ORDER BY id FOR {strength}
