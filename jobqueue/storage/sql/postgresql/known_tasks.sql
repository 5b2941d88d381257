-- The tasks that some live worker has registered. Caller: Storage.known_tasks (the sweep).
SELECT DISTINCT t.name
FROM jobqueue_worker w CROSS JOIN LATERAL json_array_elements_text(w.tasks) AS t(name)
WHERE NOT w.dead AND w.kind = 'worker'
