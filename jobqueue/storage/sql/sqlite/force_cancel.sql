-- Ends a running job as cancelled and raises its fence: its worker is refused from now on.
-- Caller: Storage.force_cancel (an operator).
UPDATE jobqueue_job
SET state = 'cancelled', fence = fence + 1, worker = NULL, claimed_at = NULL, deadline = NULL,
    finished_at = %(now)s, attempts = attempts + 1, reason = %(reason)s, version = version + 1
WHERE id = %(id)s AND state = 'running' AND fence = %(fence)s AND worker = %(worker)s
