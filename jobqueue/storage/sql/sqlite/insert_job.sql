-- Inserts one job of a chunk in the caller's transaction. Callers: Storage.insert_jobs,
-- insert_unique, which has seen under the write lock that nobody holds its key.
-- Times and rank are computed by the caller from one reading of the clock, in whole microseconds.
INSERT INTO jobqueue_job (
    id, backend, task, queue, priority, state, arguments, run_at, rank, enqueued_at, expires_at,
    max_attempts, attempts, failures, suspicions, alone, on_crash, timeout, fence,
    error_class, error_message, error_fingerprint, reason, unique_key, unique_until,
    unique_window_end, pending, has_children, schedule, tick, copied_from, created_by,
    trace_context, limit_key, version)
VALUES (
    %(id)s, %(backend)s, %(task)s, %(queue)s, %(priority)s, %(state)s, %(arguments)s, %(run_at)s,
    %(rank)s, %(enqueued_at)s, %(expires_at)s, %(max_attempts)s, 0, 0, 0, 0, %(on_crash)s,
    %(timeout)s, 0, '', '', '', %(reason)s, %(unique_key)s, %(unique_until)s,
    %(unique_window_end)s, 0, 0, %(schedule)s, %(tick)s, %(copied_from)s, %(created_by)s,
    %(trace_context)s, %(limit_key)s, 1)
