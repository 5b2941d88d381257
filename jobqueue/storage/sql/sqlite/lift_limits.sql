-- Lifts limits that the code of some sources no longer has; an operator's numbers stay.
-- Caller: Storage.seed_limits. sources: the tasks and the TASKS alias of the worker that starts.
UPDATE jobqueue_limit
SET code_running = NULL, code_rate = NULL, code_per = NULL, source = '',
    running = CASE WHEN set_by = '' THEN NULL ELSE running END,
    rate = CASE WHEN set_by = '' THEN NULL ELSE rate END,
    per = CASE WHEN set_by = '' THEN NULL ELSE per END
WHERE source IN (SELECT value FROM json_each(%(sources)s))
  AND key NOT IN (SELECT value FROM json_each(%(keys)s))
