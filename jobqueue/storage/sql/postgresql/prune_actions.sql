-- Deletes what was written down of operators long ago. Caller: Storage.prune_actions.
-- Index: jobqueue_action_at.
DELETE FROM jobqueue_action WHERE id IN (
    SELECT id FROM jobqueue_action
    WHERE at < statement_timestamp() - make_interval(secs => %(age)s::float8)
    ORDER BY at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) RETURNING id
