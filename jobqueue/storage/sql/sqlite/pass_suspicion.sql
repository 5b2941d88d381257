-- Makes a waiting job as suspect as the twin that was superseded by it: it is the same work that may
-- have killed a worker. Caller: Storage.end_many. Index: primary key.
UPDATE jobqueue_job
SET suspicions = max(suspicions, %(suspicions)s), alone = alone OR %(alone)s, version = version + 1
WHERE id = %(id)s AND state IN ('blocked', 'ready', 'retrying', 'scheduled')
