-- Records a step; the guard was read under the same write lock. Caller: Storage.record_step.
INSERT INTO jobqueue_step (job_id, name, result, fence, recorded_at)
VALUES (%(id)s, %(name)s, %(result)s, %(fence)s, %(now)s)
ON CONFLICT (job_id, name) DO NOTHING
