-- Names the tasks that a worker knows by now. Caller: Storage.update_worker_tasks.
UPDATE jobqueue_worker SET tasks = %(tasks)s::json WHERE id = %(id)s::uuid AND NOT dead
