-- Names the tasks that a worker knows by now. Caller: Storage.update_worker_tasks.
UPDATE jobqueue_worker SET tasks = %(tasks)s WHERE id = %(id)s AND NOT dead
