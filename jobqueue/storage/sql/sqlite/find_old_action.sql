-- Whether there is an Action row that is old. Caller: Storage.prune_actions.
-- Index: jobqueue_action_at.
SELECT 1 FROM jobqueue_action WHERE at < %(before)s LIMIT 1
