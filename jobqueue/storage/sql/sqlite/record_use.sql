-- Notes that jobs of a key with a rate have started, in the claim's transaction.
-- Caller: Storage.claim_limited. Index: jobqueue_limituse_part.
INSERT INTO jobqueue_limituse (key, part, used, last_at)
VALUES (%(key)s, %(part)s, %(used)s, %(now)s)
ON CONFLICT (key, part) DO UPDATE SET used = used + excluded.used, last_at = excluded.last_at
