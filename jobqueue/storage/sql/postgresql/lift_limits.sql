-- Lifts limits that the code of some sources no longer has; an operator's numbers stay.
-- Caller: Storage.seed_limits. sources: the tasks and the TASKS alias of the worker that starts.
UPDATE jobqueue_limit
SET code_running = NULL, code_rate = NULL, code_per = NULL, source = '',
    running = CASE WHEN set_by = '' THEN NULL ELSE running END,
    rate = CASE WHEN set_by = '' THEN NULL ELSE rate END,
    per = CASE WHEN set_by = '' THEN NULL ELSE per END
WHERE key = ANY(ARRAY(
    SELECT key FROM jobqueue_limit
    WHERE source = ANY(%(sources)s::text[]) AND NOT key = ANY(%(keys)s::text[])
    ORDER BY key FOR NO KEY UPDATE))
