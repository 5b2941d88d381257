-- Waits for a job's row and reads it. Caller: Storage.verdict, before it reads the attempt row:
-- the session that may still be committing holds this lock (a plain read would not wait).
SELECT state, fence, worker FROM jobqueue_job WHERE id = %(id)s::uuid FOR NO KEY UPDATE
