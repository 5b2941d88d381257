-- The tasks that some live worker has registered. Caller: Storage.known_tasks (the sweep).
SELECT DISTINCT t.value
FROM jobqueue_worker w, json_each(w.tasks) t
WHERE NOT w.dead AND w.kind = 'worker'
