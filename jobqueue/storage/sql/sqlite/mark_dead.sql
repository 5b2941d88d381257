-- Declares a worker dead: its process has ended. Callers: Storage.mark_dead, mark_expired.
UPDATE jobqueue_worker SET dead = 1, dead_at = %(now)s, dead_reason = %(reason)s, blame = %(blame)s
WHERE id = %(id)s AND NOT dead
