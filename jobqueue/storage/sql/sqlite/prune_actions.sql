-- Deletes what was written down of operators long ago. Caller: Storage.prune_actions.
-- Index: jobqueue_action_at.
DELETE FROM jobqueue_action WHERE id IN (
    SELECT id FROM jobqueue_action
    WHERE at < %(before)s ORDER BY at LIMIT %(limit)s
)
